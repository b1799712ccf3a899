#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "host/processes.h"
#include "host/sockets.h"

namespace krigtune {

[[noreturn]] void throw_peer_lost(int rank);

/// A transport over connected sockets, one to each other member (our own is null), which must outlive it. A message is
/// preceded by its length. A negative length is an exit code: whoever sends it is about to end the job. `rank`: among
/// the members. Once `interrupted`, a connection that ends is taken for our own doing.
std::unique_ptr<Transport> make_socket_transport(std::vector<int> members, int rank, std::vector<const Socket*> sockets,
                                                 const std::atomic<bool>& interrupted);

}  // namespace krigtune
