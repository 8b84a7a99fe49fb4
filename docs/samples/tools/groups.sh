# who is in the group, where it is, and how far behind
kpybroker group list --lag
kpybroker group describe readers --members

# read everything again: stop the members first, look, then execute
kpybroker group seek readers --to start --topics greetings
kpybroker group seek readers --to start --topics greetings --execute

kpybroker group delete readers --execute
