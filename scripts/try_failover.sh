#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Starts a leader, two replicas and three sentinels on this machine, to try a failover. Ctrl-C ends
# all six processes.
# Usage: scripts/try_failover.sh [first port, default 7000]
# The servers listen on PORT, PORT+1 and PORT+2 of 127.0.0.1, the sentinels on PORT+10, PORT+11 and
# PORT+12. PORT is the first port.
# Data and logs are in a temporary folder that the script deletes at its end. BLOOMERY_SERVER names
# the server program (default: the program of this tree, which is built if necessary).
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
port=${1-7000}
if ! [[ $port =~ ^[0-9]{1,5}$ ]] || [ "$port" -lt 1 ] || [ "$port" -gt 65000 ]; then
  echo "usage: $0 [first port, 1 to 65000]" >&2
  exit 2
fi
port=$((10#$port)) # 10# makes a leading zero decimal, not octal

# The ports must be free. Otherwise a server that already listens on one of them would be mistaken
# for a server of this script.
for taken in "$port" $((port + 1)) $((port + 2)) $((port + 10)) $((port + 11)) $((port + 12)); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$taken") 2>/dev/null; then
    echo "port $taken is in use: name another first port than $port" >&2
    exit 1
  fi
done

server=${BLOOMERY_SERVER:-}
if [ -z "$server" ]; then
  server=$top/build/release/bloomery-server
  "$top/scripts/install_deps.sh" run
  cd "$top"
  cmake --preset release >/dev/null
  cmake --build --preset release --target bloomery-server --parallel "$(nproc)"
fi
if ! command -v redis-sentinel >/dev/null; then
  echo 'redis-sentinel is missing: apt-get install redis-sentinel' >&2
  exit 1
fi

folder=$(mktemp -d)
pids=()
finish() {
  trap - EXIT INT TERM
  # The sentinels, which were started last, are ended first. Otherwise they would promote a replica
  # when the leader ends.
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do kill "${pids[i]}" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 0' INT TERM

ask() { # sends a command and prints its reply. arguments: port, words of the command
  redis-cli -h 127.0.0.1 -p "$@" 2>/dev/null
}

give_up() { # prints the ends of the logs and ends this script. argument: reason of the failure
  echo "$1; the logs:" >&2
  # A server that could not start has written no log, so errors of tail are ignored.
  tail -n 5 "$folder"/*/log >&2 2>/dev/null || true
  exit 1
}

# Waits up to 30 s until the reply to a command contains a text. Ends this script with an error
# after that time, or if a server or sentinel has ended.
await() { # arguments: text, port, words of a command
  for _ in $(seq 300); do
    for pid in "${pids[@]}"; do
      kill -0 "$pid" 2>/dev/null || give_up "process $pid has ended"
    done
    if [[ $(ask "${@:2}") == *"$1"* ]]; then return; fi
    sleep 0.1
  done
  give_up "no '$1' from port $2 within 30 s"
}

for i in 0 1 2; do
  own=$folder/server$i
  mkdir "$own"
  following=()
  [ "$i" -eq 0 ] || following=(--replicaof "127.0.0.1 $port")
  "$server" --bind 127.0.0.1 --port $((port + i)) --dir "$own" --logfile "$own/log" \
    "${following[@]}" &
  pids+=($!)
done
for i in 0 1 2; do await PONG $((port + i)) PING; done
await connected_slaves:2 "$port" INFO replication

for i in 0 1 2; do
  own=$folder/sentinel$i
  mkdir "$own"
  cat >"$own/sentinel.conf" <<CONFIG
bind 127.0.0.1
port $((port + 10 + i))
dir "$own"
logfile "$own/log"
sentinel monitor bloom 127.0.0.1 $port 2
sentinel down-after-milliseconds bloom 2000
sentinel failover-timeout bloom 6000
CONFIG
  redis-sentinel "$own/sentinel.conf" &
  pids+=($!)
done
for i in 0 1 2; do await 'OK 3 usable' $((port + 10 + i)) SENTINEL CKQUORUM bloom; done

cat <<HINT

leader 127.0.0.1:$port (pid ${pids[0]}), replicas on $((port + 1)) and $((port + 2)), sentinels on \
$((port + 10)) to $((port + 12)). In another terminal:
  redis-cli -p $port BF.ADD seen item
  kill -9 ${pids[0]}
  sleep 5
  redis-cli -p $((port + 10)) SENTINEL GET-MASTER-ADDR-BY-NAME bloom
  redis-cli -p the-port-it-named BF.EXISTS seen item
Ctrl-C ends all of it.
HINT
wait
