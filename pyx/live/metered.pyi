from typing import Any

from typing_extensions import disjoint_base
from windjoin.pyx.live.door import Door
from windjoin.pyx.live.shedder import Beat

@disjoint_base
class MeteredDoor(Door):
    beat: Beat  # None until there is one
    def push(self, stream: Any, rows: Any) -> Any: ...
