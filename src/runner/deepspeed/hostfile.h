#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// Hosts and their slots. Private to this room.
namespace krigtune {

struct HostSlots {
  std::string host;
  std::int64_t slots = 0;
};

/// Lines "host slots=4", as deepspeed and Open MPI write them, "host:4" (MPICH) or a host alone (one slot); comments
/// begin with '#'. Throws UserError with the line for any other, and for a host named twice.
std::vector<HostSlots> read_hostfile(const std::filesystem::path& file);

/// What --include and --exclude of deepspeed leave of the hosts: "host:0,1@other", slots counted from 0; a host without
/// slots stands for all of its. One of both is empty. Throws UserError for a host that is not there.
std::vector<HostSlots> chosen_hosts(std::vector<HostSlots> hosts, std::string_view include, std::string_view exclude);

}  // namespace krigtune
