#!lua
-- write-refusal.lua: do nothing. As it declares neither `no-writes` nor `allow-oom`, Redis refuses
-- to begin it whenever it refuses writes: when it is full, cannot write to its disk, is a replica,
-- or has too few replicas. As it writes nothing, asking costs neither memory nor disk.
--   KEYS[1] any key: it says which master of a Cluster is asked
--   Returns 'taken'    writes are taken
return 'taken'
