from typing import Any

from typing_extensions import disjoint_base
from windjoin.pyx.live.session_base import SessionBase
from windjoin.pyx.live.shedder import Beat

@disjoint_base
class MeteredInput(SessionBase):
    beat: Beat  # None until there is one
    def push(self, stream: Any, rows: Any) -> Any: ...
