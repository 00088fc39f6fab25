"""Delta's two jars, and those of an S3-compatible store where one is used, fetched once, by checksum.

They come through Spark's own Ivy, which knows the registry and the user's mirrors, one by one and
without their dependencies: Spark has these already, and Ivy would bring 85 MB of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from recrawl.bootstrap.java import java_environment
from recrawl.bootstrap.places import Places
from recrawl.bootstrap.processes import run
from recrawl.errors import EnvironmentFaultError

DOWNLOAD_MB = 10
S3_DOWNLOAD_MB = 690


@dataclass(frozen=True)
class Jar:
    """One jar.

    Attributes:
        group, artifact, version: its Maven coordinates.
        sha256: its digest, hexadecimal.
    """

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name under which it is kept."""
        return f"{self.artifact}-{self.version}.jar"


JARS = (
    Jar(
        "io.delta", "delta-spark_4.2_2.13", "4.4.0", "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"
    ),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)

#: Hadoop's client for S3-compatible stores, in the version of Spark's own Hadoop, with what it needs.
S3_JARS = (
    Jar("org.apache.hadoop", "hadoop-aws", "3.5.0", "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa"),
    Jar(
        "software.amazon.awssdk", "bundle", "2.35.4", "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677"
    ),
    Jar(
        "software.amazon.s3.analyticsaccelerator",
        "analyticsaccelerator-s3",
        "1.3.1",
        "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    ),
    Jar(
        "org.wildfly.openssl",
        "wildfly-openssl",
        "2.2.5.Final",
        "71fb7932f99a727edb23c5a2cb8c6855ac7196fad41aa0669b3998e277165154",
    ),
)

#: Runs in the environment's Python: Ivy without a Spark application, about 4 s.
_RESOLVE = """
import sys
from pyspark.java_gateway import launch_gateway
folder, *addresses = sys.argv[1:]
jvm = launch_gateway().jvm
jvm.java.lang.System.setProperty("spark.jars.ivy", folder)
for address in addresses:
    found = jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(jvm.java.net.URI(address))
    print("RESOLVED", found.mkString(" "))
"""


def missing_jars(places: Places, wanted: tuple[Jar, ...] = JARS) -> list[Jar]:
    """The jars of `wanted` that are not there or not whole."""
    return [jar for jar in wanted if digest_of(places.jars / jar.file_name) != jar.sha256]


def fetch_jars(places: Places, jars: tuple[Jar, ...] = JARS) -> None:
    """Fetch those of `jars` that are missing and check their digests.

    Raises:
        EnvironmentFaultError: no network, or a file that is not the one expected.
    """
    wanted = missing_jars(places, jars)
    if not wanted:
        return
    cache = places.state / "ivy"
    # A cut-off download may have left half a jar in the cache.
    shutil.rmtree(cache, ignore_errors=True)
    addresses = [f"ivy://{jar.group}:{jar.artifact}:{jar.version}?transitive=false" for jar in wanted]
    environment = {**os.environ, **java_environment(places)}
    output = run([places.python, "-c", _RESOLVE, cache, *addresses], "fetching jars", environment)
    places.jars.mkdir(parents=True, exist_ok=True)
    resolved = [Path(path) for line in output.splitlines() if line.startswith("RESOLVED ") for path in line.split()[1:]]
    for jar in wanted:
        source = next((path for path in resolved if path.name == f"{jar.group}_{jar.file_name}"), None)
        if source is None or digest_of(source) != jar.sha256:
            raise EnvironmentFaultError(
                f"{jar.file_name} did not come, or is not the file that was expected (its SHA-256 differs).",
                "Check what stands between this machine and the Maven registry (a mirror, a proxy) and run again.",
            )
        temporary = places.jars / f".{jar.file_name}"
        shutil.copyfile(source, temporary)
        temporary.replace(places.jars / jar.file_name)
    shutil.rmtree(cache, ignore_errors=True)


def digest_of(file: Path) -> str:
    """The SHA-256 of a file, hexadecimal; empty where there is no such file."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""
