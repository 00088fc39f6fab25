"""The sites of the sample web: their topics and the sentences that their articles are made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleSite:
    """One made-up site.

    Attributes:
        host: its name.
        language: of its pages.
        title: its name for people.
        topics: what its articles are about; each topic gets one article an aspect.
        aspects: titles of articles, with `{topic}` in them.
        sentences: sentences with or without `{topic}`.
        robots: its robots.txt behind "User-agent: *"; None: it has none.
    """

    host: str
    language: str
    title: str
    topics: tuple[str, ...]
    aspects: tuple[str, ...]
    sentences: tuple[str, ...]
    robots: str | None = "Disallow:\n"


def _words(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))


SITES: tuple[SampleSite, ...] = (
    SampleSite(
        "garden.sample.test",
        "en",
        "The Patient Garden",
        _words("Tomatoes | Lavender | Beans | Roses | Pumpkins | Thyme | Apple trees | Ferns | Leeks | Sunflowers"),
        ("{topic}, from seed to harvest", "What {topic} taught us this year"),
        _words(
            "We began with a tray of soil on the window sill and more hope than knowledge."
            "| {topic} ask for little: light in the morning, shade at noon, and someone who looks after them."
            "| The old wall keeps the warmth of the day, and that alone is worth a week in spring."
            "| Slugs came in the third night, so we learned to go out with a lantern."
            "| Water in the evening, never on the leaves, and never in a hurry."
            "| Our neighbour has grown {topic} for forty years and still writes down every frost."
            "| By August there was more than we could carry, and the street ate with us."
            "| Compost is slow, but it forgives every mistake that we bring to it."
            "| Next year {topic} will stand beside the gate, where the bees pass first."
        ),
        "Disallow: /private/\n",
    ),
    SampleSite(
        "kueche.sample.test",
        "de",
        "Die kleine Küche",
        _words("Brot | Kartoffeln | Linsen | Spinat | Äpfel | Pilze | Nudeln | Kürbis | Zwiebeln | Quark"),
        ("{topic} für jeden Tag", "Ein Abend mit {topic}"),
        _words(
            "Zuerst wird alles gewaschen, geschnitten und in kleine Schüsseln gelegt."
            "| {topic} brauchen Zeit, und diese Zeit riecht man später in der ganzen Wohnung."
            "| Meine Großmutter wog nie etwas ab, sie sah nur in den Topf und nickte."
            "| Ein wenig Salz am Anfang ist besser als viel Salz am Ende."
            "| Wer keinen Ofen hat, nimmt eine schwere Pfanne mit Deckel und Geduld."
            "| Am zweiten Tag schmeckt es noch besser, wenn etwas übrig bleibt."
            "| Dazu passt ein Salat, ein Glas Wasser und ein langes Gespräch."
            "| Im Winter kochen wir {topic} gern für die Nachbarn mit."
        ),
        "Crawl-delay: 0.2\n",
    ),
    SampleSite(
        "gares.sample.test",
        "fr",
        "Petites gares",
        _words("Valmont | Les Tilleuls | Saint-Aubin | La Roche | Belleval | Port-Clair | Montfleury | Le Gué"),
        ("La gare de {topic}", "Un matin à {topic}", "{topic} sous la neige"),
        _words(
            "Le premier train arrive avant le soleil, presque vide, et repart sans bruit."
            "| À {topic}, l'horloge avance de deux minutes depuis toujours et personne ne s'en plaint."
            "| Le chef de gare arrose ses géraniums pendant que les voyageurs cherchent leur quai."
            "| On entend la rivière sous le pont quand la locomotive s'arrête."
            "| Une vieille affiche promet encore la mer pour dix francs."
            "| Les enfants comptent les wagons et se trompent avec joie."
            "| Le café de {topic} sert un chocolat épais que l'on boit debout."
            "| Le soir, la lumière du dernier train glisse longtemps sur les champs."
        ),
    ),
    SampleSite(
        "estrellas.sample.test",
        "es",
        "Cuaderno de estrellas",
        _words("Orión | Casiopea | Sirio | Andrómeda | Saturno | la Luna | Júpiter | las Pléyades"),
        ("Cómo encontrar {topic}", "Una noche mirando {topic}", "Lo que sabemos de {topic}"),
        _words(
            "Apaga las luces y espera veinte minutos: los ojos también necesitan anochecer."
            "| Para ver {topic} basta un cielo limpio y un banco cómodo."
            "| Los antiguos contaban historias con estos puntos para no perderse en el mar."
            "| Con unos prismáticos sencillos aparece lo que antes era solo una mancha."
            "| El frío de la madrugada es el precio de la mejor vista."
            "| Anotamos la hora, el lugar y el nombre de quien lo vio primero."
            "| La luz que llega hoy salió cuando aquí nadie escribía todavía."
            "| Mañana {topic} saldrá cuatro minutos antes, como cada día."
        ),
    ),
    SampleSite(
        "library.sample.test",
        "en",
        "The Harbour Library",
        _words("Maps | Diaries | Atlases | Letters | Almanacs | Cookbooks | Log books | Poems | Dictionaries"),
        ("{topic} in the reading room", "How we repair {topic}", "{topic} nobody has borrowed"),
        _words(
            "The harbour library opens when the ferry leaves and closes when it comes back."
            "| {topic} stand on the third floor, where the light is kind to old paper."
            "| Every volume is dusted once a year, by hand, from the top shelf down."
            "| Glue made of wheat has held these bindings for two centuries."
            "| A reader left a pressed flower between two pages, and we kept it there."
            "| The catalogue began as a shoe box and is now forty drawers of oak."
            "| Whoever returns {topic} late pays with a story told at the desk."
            "| Salt is the enemy here; it comes in with every coat."
        ),
        None,
    ),
    SampleSite(
        "bosco.sample.test",
        "it",
        "Il bosco lento",
        _words("Querce | Castagni | Funghi | Lupi | Sentieri | Ruscelli | Gufi | Felci"),
        ("{topic} del nostro bosco", "Camminando tra {topic}", "{topic} in autunno"),
        _words(
            "Si entra nel bosco in silenzio, come in casa di qualcuno che dorme."
            "| {topic} cambiano con le stagioni, e chi torna spesso se ne accorge."
            "| Il guardiano segna i sentieri con pietre bianche, mai con la vernice."
            "| Dopo la pioggia la terra profuma di foglie e di pane."
            "| Nessuno ha fretta, perché la luce arriva tardi e resta a lungo."
            "| Un vecchio ponte di legno porta ancora i nomi dei taglialegna."
            "| Raccogliamo solo quello che basta per una cena."
        ),
    ),
    SampleSite(
        "umi.sample.test",
        "ja",
        "海の小さな図鑑",
        _words("くらげ | たこ | いるか | さんご | かに | うみがめ | くじら | 貝がら"),
        ("{topic}のくらし", "{topic}を見た日", "{topic}について分かったこと"),
        _words(
            "朝の港は静かで、船の音だけが遠くから聞こえてきます。"
            "| {topic}は潮の流れをよく知っていて、同じ場所に毎年もどってきます。"
            "| 漁師のおじいさんは、海の色を見るだけで天気が分かると言います。"
            "| 子どもたちは浜辺でひろったものを一つずつ箱にしまいました。"
            "| 水の中では光が青くなり、遠くのものが近くに見えます。"
            "| 図書館の古い本にも、{topic}の絵が何枚ものっています。"
            "| 夏の終わりには、海の風が少しだけつめたくなります。"
        ),
    ),
    SampleSite(
        "weather.sample.test",
        "en",
        "Village Weather",
        _words("North Field | Mill Lane | The Ford | Church Hill | East Wood | The Quarry | Long Meadow | High Farm"),
        ("{topic} today", "The rain gauge at {topic}", "A year of wind at {topic}"),
        _words(
            "Clouds came over the ridge before breakfast and left before noon."
            "| At {topic} the thermometer hangs on the north side, as it should."
            "| A light wind from the west, enough for the washing and not for the kites."
            "| The gauge held eleven millimetres, most of it from one loud hour."
            "| Fog lay in the valley until the school bell rang."
            "| The swallows fly low, and people at {topic} take their coats."
            "| Frost is expected on the grass, though not on the road."
            "| The barometer has been steady for three days, which makes everyone suspicious."
        ),
        "Disallow: /archive/\nAllow: /archive/latest\n",
    ),
)
