"""The grammar of plain words: phrases one after another, each in one of a few forms.

It says which words may stand together. What a sentence means, and whether its phrases fit, is decided in `compose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from nightporter.rules.plain.tokens import NotUnderstood, Piece

if TYPE_CHECKING:
    from lark import Lark, Tree

_GRAMMAR: Final = r"""
start: phrase+

?phrase: cadence | adverb | often | days | nth | monthdays | months | date | times | marks | window | begins | part
       | relative | later | zone | season | starts | ends | counted | except | once | clause

cadence: EVERY amounts                                -> every_amount
       | EVERY UNIT                                   -> every_unit
       | EVERY OTHER UNIT                             -> every_other_unit
       | EVERY OTHER daylist                          -> every_other_days
       | EVERYDAY                                     -> every_day
adverb: ADVERB | FORTNIGHTLY | NIGHTLY
often: (ONCE | TWICE | COUNT TIMES) (A | PER | EVERY) UNIT
amounts: amount (SEP_AMOUNT? amount)*
amount: DUR | COUNT UNIT | A UNIT

days: (ON | AT)? EVERY? daylist
daylist: dayitem (SEP_DAY dayitem)*
dayitem: dayname | WORKDAY | WEEKENDS
       | dayname (_to | UNTIL) dayname                -> dayrange
       | FROM dayname (_to | UNTIL) dayname           -> dayrange
       | BETWEEN dayname SEP_DAY dayname              -> dayrange
dayname: WEEKDAY | WEEKDAYPLURAL
_to: DASH | TO

nth: ON? EVERY? nthlist
nthlist: nthitem (SEP_NTH nthitem)* scope?
nthitem: ordinals (WEEKDAY | WEEKDAYPLURAL | UNIT | WORKDAY)
ordinals: ordinal (SEP_ORD ordinal)*
ordinal: ORD | ORDWORD | LAST
monthdays: ON? EVERY? ordinals scope?                 -> month_ordinals
         | ON? UNIT MONTHDAY (SEP_MONTHDAY MONTHDAY)* scope?  -> month_numbers
         | ON? UNIT MONTHDAY _to MONTHDAY scope?      -> month_range
scope: OF (EVERY | A)? UNIT                           -> scope_unit
     | OF EVERY? monthlist YEAR?                      -> scope_months
months: (IN | EVERY | IN EVERY) monthlist
monthlist: monthitem (SEP_MONTH monthitem)*
monthitem: MONTH | MONTH _to MONTH
date: ON? EVERY? datelist
datelist: dateitem (SEP_DATE dateitem)*
dateitem: DAYNUM OF? MONTH YEAR? | MONTH DAYNUM YEAR? | ISO

times: AT? time (SEP_TIME time)*
time: PASTHOUR? (CLOCK | HOUR) OCLOCK? PART?
marks: AT? COLON (SEP_COLON COLON)*                   -> marks
     | AT? UNIT MINUTENUM (SEP_MINUTE MINUTENUM)*     -> marks
     | AT? COUNT UNIT PAST (EVERY UNIT | UNIT)?       -> past_marks
     | ONHOUR                                         -> on_hour
begins: FROM AT? time
window: (FROM | BETWEEN | AT)? time (_to | UNTIL) time
      | BETWEEN time SEP_TIME time
part: EVERY? PART
relative: TODAY | TOMORROW | OVERMORROW | TONIGHT | (NEXT | THIS) WEEKDAY | THIS PART
later: LATER amounts | amounts FROMNOW
zone: ZONE CLOCKTIME?
season: FROM_DATE MONTH _to MONTH | BETWEEN_DATE MONTH SEP_MONTH MONTH
starts: FROM_DATE ON? bound | BETWEEN_DATE bound SEP_DATE bound
ends: UNTIL_DATE ON? bound
bound: dateitem | MONTH YEAR? | TODAY | TOMORROW | NEXT WEEKDAY | ENDOF (MONTH YEAR? | UNIT)
counted: COUNTED
once: ONCE
except: EXCEPT (ON | IN)? (daylist | datelist | monthlist | HOLIDAYS)
      | EXCEPT ON? nthlist
clause: CLAUSE

%declare EVERY OTHER AT ON OF IN FROM TO UNTIL BETWEEN EXCEPT A PER TIMES ONCE TWICE PAST CLOCKTIME
%declare NEXT THIS TODAY TOMORROW OVERMORROW TONIGHT COUNTED WORKDAY WEEKENDS HOLIDAYS OCLOCK FORTNIGHTLY
%declare ONHOUR UNIT ORDWORD LAST WEEKDAY WEEKDAYPLURAL MONTH CLOCK ADVERB PART DUR ZONE DASH COLON
%declare EVERYDAY NIGHTLY PASTHOUR FROMNOW ENDOF
%declare ISO ORD COUNT HOUR DAYNUM YEAR MINUTENUM MONTHDAY LATER FROM_DATE UNTIL_DATE BETWEEN_DATE
%declare SEP_DAY SEP_NTH SEP_ORD SEP_MONTH SEP_DATE SEP_TIME SEP_COLON SEP_MINUTE SEP_MONTHDAY SEP_AMOUNT CLAUSE
"""


def tree_of(pieces: list[Piece]) -> Tree[Any]:
    """The phrases of a sentence. Raises NotUnderstood at the token that does not fit what stands before it."""
    from lark.exceptions import UnexpectedToken

    try:
        return _parser().parse(pieces)
    except UnexpectedToken as error:
        at = error.token.start_pos
        raise NotUnderstood("", -1 if at is None or error.token.type == "$END" else at) from None


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark, Token
    from lark.lexer import Lexer

    class Pieces(Lexer):
        """Hands on the tokens that are there already."""

        def __init__(self, lexer_conf: Any) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Token]:
            for piece in lexer_state:
                yield Token(piece.kind, piece, start_pos=piece.start)

    return Lark(_GRAMMAR, parser="lalr", lexer=Pieces)
