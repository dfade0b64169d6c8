"""What a command of Redis is as a template: its name and its options, with $1, $2, … in the places of keys and all else; and what it does."""

from collections.abc import Sequence

from sensorbench.traffic.trace import TemplateKind


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Commands that consist of two words.
_CONTAINERS = _words("ACL CLIENT CLUSTER COMMAND CONFIG FUNCTION LATENCY MEMORY MODULE OBJECT PUBSUB SCRIPT SLOWLOG XGROUP XINFO")
# Where options may stand, counted from the first word after the name, and which there are: a value that reads like an option stays a value.
_OPTIONS: dict[str, tuple[int, frozenset[str]]] = {
    name: (first, _words(options))
    for names, first, options in (
        ("SET", 2, "EX PX EXAT PXAT NX XX GET KEEPTTL"),
        ("GETEX", 1, "EX PX EXAT PXAT PERSIST"),
        ("EXPIRE PEXPIRE EXPIREAT PEXPIREAT", 2, "NX XX GT LT"),
        ("ZADD", 1, "NX XX GT LT CH INCR"),
        ("ZRANGE", 3, "BYSCORE BYLEX REV LIMIT WITHSCORES"),
        ("ZRANGESTORE", 4, "BYSCORE BYLEX REV LIMIT"),
        ("ZRANGEBYSCORE ZREVRANGEBYSCORE", 3, "WITHSCORES LIMIT"),
        ("ZRANGEBYLEX ZREVRANGEBYLEX", 3, "LIMIT"),
        ("ZREVRANGE", 3, "WITHSCORES"),
        ("ZRANK ZREVRANK", 2, "WITHSCORE"),
        ("ZRANDMEMBER HRANDFIELD", 2, "WITHSCORES WITHVALUES"),
        ("SCAN", 1, "MATCH COUNT TYPE"),
        ("SSCAN HSCAN ZSCAN", 2, "MATCH COUNT NOVALUES"),
        ("SORT SORT_RO", 1, "BY LIMIT GET ASC DESC ALPHA STORE"),
        ("LPOS", 2, "RANK COUNT MAXLEN"),
        ("LMOVE BLMOVE", 2, "LEFT RIGHT"),
        ("LINSERT", 1, "BEFORE AFTER"),
        ("COPY", 2, "DB REPLACE"),
        ("XADD", 1, "NOMKSTREAM MAXLEN MINID LIMIT ~ = *"),
        ("XTRIM", 1, "MAXLEN MINID LIMIT ~ ="),
        ("XRANGE XREVRANGE", 3, "COUNT"),
        ("XREAD", 0, "COUNT BLOCK STREAMS"),
        ("XREADGROUP", 0, "GROUP COUNT BLOCK NOACK STREAMS"),
        ("GEOADD", 1, "NX XX CH"),
        ("GEOSEARCH", 1, "FROMMEMBER FROMLONLAT BYRADIUS BYBOX ASC DESC COUNT ANY WITHCOORD WITHDIST WITHHASH M KM FT MI"),
        ("BITCOUNT BITPOS", 2, "BYTE BIT"),
        ("BITOP", 0, "AND OR XOR NOT"),
        ("FLUSHALL FLUSHDB", 0, "ASYNC SYNC"),
    )
    for name in names.split()
}
_READS = _words(
    "BITCOUNT BITFIELD_RO BITPOS DBSIZE DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST GEOHASH GEOPOS GEORADIUSBYMEMBER_RO "
    "GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS KEYS LCS LINDEX LLEN "
    "LOLWUT LPOS LRANGE MGET OBJECT PEXPIRETIME PFCOUNT PTTL RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER "
    "SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH TTL TYPE XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER "
    "ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK "
    "ZSCAN ZSCORE ZUNION"
)
_WRITES = _words(
    "APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL EVAL EVALSHA EXPIRE EXPIREAT "
    "FCALL FLUSHALL FLUSHDB GEOADD GEORADIUS GEORADIUSBYMEMBER GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX "
    "INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MIGRATE MOVE MSET MSETNX PERSIST PEXPIRE PEXPIREAT PFADD "
    "PFMERGE PSETEX RENAME RENAMENX RESTORE RPOP RPOPLPUSH RPUSH RPUSHX SADD SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE "
    "SORT SPOP SREM SUNIONSTORE SWAPDB UNLINK XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY "
    "ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE"
)
_KINDS: dict[str, TemplateKind] = {
    **dict.fromkeys(_READS, "read"),
    **dict.fromkeys(_WRITES, "write"),
    "MULTI": "begin",
    "EXEC": "commit",
    "DISCARD": "rollback",
}
_NO_OPTIONS: tuple[int, frozenset[str]] = (0, frozenset())


def command_template(words: Sequence[str]) -> tuple[str, tuple[str, ...], TemplateKind]:
    """A command as a template, its values in order, and what it does. `words` are its name and its arguments."""
    name = words[0].upper()
    kind = _KINDS.get(name, "other")
    rest = words[1:]
    parts = [name]
    if name in _CONTAINERS and rest:
        parts.append(rest[0].upper())
        rest = rest[1:]
    first, options = _OPTIONS.get(name, _NO_OPTIONS)
    values: list[str] = []
    for place, word in enumerate(rest):
        if place >= first and word.upper() in options:
            parts.append(word.upper())
        else:
            values.append(word)
            parts.append(f"${len(values)}")
    return " ".join(parts), tuple(values), kind
