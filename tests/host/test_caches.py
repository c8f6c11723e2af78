"""Caches, where sysfs does not tell them as usual."""

from __future__ import annotations

from host.machines import KIB, MIB, arm, table, vm

from popmodel.host.hardware import read


def test_without_caches_the_topology_has_none_and_says_so() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    told = read(files)
    assert told.caches == ()
    assert told.line is None
    assert "caches" not in told.topology()
    assert told.absent == {"topology.caches": "neither sysfs nor lstopo reports the caches"}


LSTOPO = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine">
  <object type="Package" os_index="0">
   <object type="L3Cache" cache_size="33554432" depth="3" cache_linesize="64" cache_type="0">
    <object type="L2Cache" cache_size="524288" depth="2" cache_linesize="64" cache_type="0">
     <object type="L1Cache" cache_size="32768" depth="1" cache_linesize="64" cache_type="1">
      <object type="L1iCache" cache_size="32768" depth="1" cache_linesize="64" cache_type="2">
       <object type="Core" os_index="0"><object type="PU" os_index="0"/></object>
      </object>
     </object>
    </object>
    <object type="L2Cache" cache_size="524288" depth="2" cache_linesize="64" cache_type="0">
     <object type="L1Cache" cache_size="32768" depth="1" cache_linesize="64" cache_type="1">
      <object type="Core" os_index="1"><object type="PU" os_index="1"/></object>
     </object>
    </object>
   </object>
  </object>
 </object>
</topology>
"""


def test_lstopo_tells_the_caches_that_sysfs_lacks() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    told = read({**files, "lstopo": LSTOPO})
    assert told.topology()["caches"] == table(
        ("L1", 32 * KIB, 1), ("L2", 512 * KIB, 1), ("L3", 32 * MIB, 2)
    )
    assert told.line == 64
    assert told.absent == {}


def test_a_damaged_lstopo_is_passed_over() -> None:
    files = {path: text for path, text in vm().files().items() if "/cache/" not in path}
    assert read({**files, "lstopo": "<topology"}).caches == ()


def test_sysfs_without_sizes() -> None:
    # some boards describe their caches without their sizes
    files = {path: text for path, text in arm().files().items() if not path.endswith("/size")}
    assert read(files).caches == ()
