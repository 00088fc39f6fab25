"""Pages that say with a status of success that there is no page.

Told by what title or heading say, in the languages most written on the web, and only where little
else stands on the page: an article about missing pages is a page.
"""

from __future__ import annotations

import re

#: Characters of visible text above which a page has content, whatever its title says.
MAX_CHARACTERS = 1_500
#: The same for a title or heading that is more than the phrase alone.
MAX_CHARACTERS_BESIDE = 600

_PHRASES = (
    # en
    r"(?:the |this |that |your |requested )*(?:page|file|document|article|resource|url|content|product|item)s?"
    r"(?: (?:you (?:requested|are looking for|were looking for)|requested))?"
    r"(?: (?:is|was|could|can|has|does|cannot|can't|couldn't|doesn't|isn't|wasn't))*"
    r" (?:not (?:be )?(?:found|exist|available)|no longer (?:exists?|available)|unavailable|missing|exist)",
    r"(?:oops|sorry)[!,. ]+.{0,40}not (?:be )?found",
    r"not found",
    r"nothing (?:was )?found",
    # de, fr, es, pt, it, nl, sv, da/no, pl, cs, ru, uk, tr
    r"(?:seite|datei|artikel|dokument) (?:wurde )?(?:leider )?(?:nicht gefunden|existiert nicht)",
    r"nicht gefunden",
    r"(?:page|fichier|article|contenu) (?:est )?(?:introuvable|non trouvée?|inexistante?)",
    r"p[aá]gina no (?:encontrada|existe|disponible)",
    r"p[aá]gina n[aã]o (?:encontrada|existe)",
    r"pagina non (?:trovata|esiste|disponibile)",
    r"pagina (?:is )?niet (?:gevonden|beschikbaar)",
    r"sidan (?:hittades inte|kunde inte hittas|finns inte)",
    r"siden (?:blev |ble )?ikke fundet|siden finnes ikke|fant ikke siden",
    r"nie znaleziono(?: strony)?|strona nie (?:została znaleziona|istnieje)",
    r"str[aá]nka (?:nebyla )?nenalezena|stránka neexistuje",
    r"страница не (?:найдена|существует)|не найдено",
    r"сторінку не знайдено",
    r"sayfa bulunamad[ıi]",
    # zh, ja, ko
    r"(?:页面|頁面|网页|網頁|您访问的页面)(?:不存在|未找到|找不到|无法找到)|找不到(?:页面|頁面|网页|網頁)",
    r"(?:お探しの)?ページ(?:が|は)?(?:見つかりません|存在しません|ありません)(?:でした)?",
    r"페이지를 찾을 수 없습니다",
)
_CODE = r"4(?:04|10)"
_ERROR = r"(?:error|fehler|erreur|errore|http|status)"
#: A number alone may be a car or a flight; with a word of error it is the status.
_SPEAKS = re.compile(rf"\b{_ERROR}[ :-]*{_CODE}\b|\b{_CODE}[ :-]+{_ERROR}\b|{'|'.join(_PHRASES)}", re.IGNORECASE)
#: Parts of a title: `Page not found | A shop`.
_PARTS = re.compile(r"\s+[|\u2013\u2014·•»:-]+\s+|[|»]")
_WHOLE = re.compile(
    rf"\W*(?:{_ERROR}[ :-]*)?(?:{_CODE})?\W*(?:{_ERROR})?\W*(?:{'|'.join(_PHRASES)})?\W*", re.IGNORECASE
)
_SEARCHED_CHARACTERS = 200


def names_missing_page(title: str | None, heading: str | None) -> bool:
    """Whether title or first heading speak of a missing page."""
    return any(text and (_is_all(text) or _SPEAKS.search(text[:_SEARCHED_CHARACTERS])) for text in (title, heading))


def soft_404_reason(title: str | None, heading: str | None, visible_text: str) -> str:
    """Why a page that was answered with a status of success is taken for a missing one; "" if it is not.

    Args:
        title: its title.
        heading: its first heading of the first level.
        visible_text: what a reader sees, navigation included.
    """
    for what, text in (("title", title), ("heading", heading)):
        if not text:
            continue
        alone = _is_all(text)
        if not alone and _SPEAKS.search(text[:_SEARCHED_CHARACTERS]) is None:
            continue
        if len(visible_text) <= (MAX_CHARACTERS if alone else MAX_CHARACTERS_BESIDE):
            return f"its {what} is {text[:80]!r}"
    return ""


def _is_all(text: str) -> bool:
    """Whether a text, or one of its parts, says that the page is missing and nothing else."""
    for part in _PARTS.split(text[:_SEARCHED_CHARACTERS]):
        if _WHOLE.fullmatch(part) and (_SPEAKS.search(part) or re.search(rf"\b{_CODE}\b", part)):
            return True
    return False
