"""Delta's two jars, fetched once, by checksum.

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
    Jar("io.delta", "delta-spark_4.2_2.13", "4.4.0", "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead"),
    Jar("io.delta", "delta-storage", "4.4.0", "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"),
)

#: Needed only where the storage root is an S3-compatible store; brings the vendor's client along.
S3_PACKAGES = "org.apache.hadoop:hadoop-aws:3.5.0"

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


def missing_jars(places: Places) -> list[Jar]:
    """The jars that are not there or not whole."""
    return [jar for jar in JARS if digest_of(places.jars / jar.file_name) != jar.sha256]


def fetch_jars(places: Places) -> None:
    """Fetch the jars that are missing and check their digests.

    Raises:
        EnvironmentFaultError: no network, or a file that is not the one expected.
    """
    wanted = missing_jars(places)
    if not wanted:
        return
    cache = places.state / "ivy"
    # A cut-off download may have left half a jar in the cache.
    shutil.rmtree(cache, ignore_errors=True)
    addresses = [f"ivy://{jar.group}:{jar.artifact}:{jar.version}?transitive=false" for jar in wanted]
    environment = {**os.environ, **java_environment(places)}
    output = run([places.python, "-c", _RESOLVE, cache, *addresses], "fetching Delta's jars", environment)
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
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
