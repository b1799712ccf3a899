#include "engine/host/launch.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error.h"
#include "core/secret.h"
#include "engine/host/mpi_processes.h"
#include "engine/host/sockets.h"

namespace krigtune::engine {
namespace {

constexpr int kDefaultPort = 29500;  // torchrun's

int number(const Environment& environment, const std::string& name) {
  const std::optional<std::string> text = environment(name);
  if (!text) throw UserError(fmt::format("the variable {} is missing", name), "start every process with the same ones");
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    throw UserError(fmt::format("the variable {} is '{}'", name, *text), "it must be a number");
  }
  return value;
}

Launch launched(const Environment& environment, Launch::Kind kind, const char* by, const char* rank, const char* size) {
  Launch launch;
  launch.kind = kind;
  launch.by = by;
  launch.rank = launch.rendezvous.rank = number(environment, rank);
  launch.size = launch.rendezvous.size = number(environment, size);
  constexpr int kMostProcesses = 1 << 16;
  if (launch.size > kMostProcesses) {
    throw UserError(fmt::format("{} is {}", size, launch.size),
                    fmt::format("a job has {} processes at most", kMostProcesses));
  }
  launch.rendezvous.token = environment(kTokenVariable).value_or("");
  if (launch.rank >= launch.size) {
    throw UserError(fmt::format("{} is {}, but {} is {}", rank, launch.rank, size, launch.size), "ranks count from 0");
  }
  return launch;
}

// Returns the port of the variable, or the default, plus `added`.
int port_from(const Environment& environment, int by_default, int added = 0) {
  constexpr int kMostPort = 65535;
  if (!environment("MASTER_PORT")) return by_default + added;
  const int port = number(environment, "MASTER_PORT");
  if (port >= 1 && port <= kMostPort - added) return port + added;
  throw UserError(fmt::format("the variable MASTER_PORT is {}", port),
                  fmt::format("a port is a number from 1 to {}", kMostPort - added));
}

Launch by_torchrun(const Environment& environment) {
  Launch launch = launched(environment, Launch::Kind::kSockets, "torchrun's variables", "RANK", "WORLD_SIZE");
  Rendezvous& rendezvous = launch.rendezvous;
  rendezvous.host = environment("MASTER_ADDR").value_or(loopback_host());
  // torchrun's own agent may listen on the port itself.
  const bool is_taken = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  rendezvous.port = port_from(environment, kDefaultPort, is_taken ? 1 : 0);
  return launch;
}

Launch by_srun(const Environment& environment) {
  Launch launch = launched(environment, Launch::Kind::kSockets, "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  Rendezvous& rendezvous = launch.rendezvous;
  const bool one_node = environment("SLURM_STEP_NUM_NODES").value_or("1") == "1";
  const std::optional<std::string> nodes = environment("SLURM_STEP_NODELIST");
  rendezvous.host = environment("MASTER_ADDR").value_or(one_node || !nodes ? loopback_host() : first_host(*nodes));
  // These ports lie below those that the system assigns by itself (from 32768 on). Steps of a job may run side by side,
  // so they get different ports.
  constexpr int kFirst = 20000;
  constexpr int kPorts = 12000;
  constexpr int kJobStride = 16;
  const int job = environment("SLURM_JOB_ID") ? number(environment, "SLURM_JOB_ID") : 0;
  const int step = environment("SLURM_STEP_ID") ? number(environment, "SLURM_STEP_ID") : 0;
  rendezvous.port = port_from(environment, kFirst + (job % kPorts * kJobStride + step % kPorts) % kPorts);
  return launch;
}

}  // namespace

Launch launch_from(const Environment& environment) {
  const auto mpi = [&](const char* rank, const char* size) {
    return launched(environment, Launch::Kind::kMpi, "mpirun", rank, size);
  };
  Launch launch;
  if (environment("OMPI_COMM_WORLD_SIZE")) {
    launch = mpi("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  } else if (environment("RANK") && environment("WORLD_SIZE")) {
    launch = by_torchrun(environment);
  } else if (environment("PMIX_RANK") && environment("SLURM_STEP_NUM_TASKS")) {
    launch = mpi("PMIX_RANK", "SLURM_STEP_NUM_TASKS");
  } else if (environment("SLURM_STEP_NUM_TASKS")) {  // a batch script alone does not have this variable
    launch = by_srun(environment);
  } else if (environment("PMI_SIZE")) {
    launch = mpi("PMI_RANK", "PMI_SIZE");
  }
  if (launch.size <= 1) return {};
  return launch;
}

std::map<std::string, std::optional<std::string>> local_rank_variables(int rank, int size, int port,
                                                                       const std::string& token) {
  return {{"RANK", std::to_string(rank)},
          {"LOCAL_RANK", std::to_string(rank)},
          {"WORLD_SIZE", std::to_string(size)},
          {"LOCAL_WORLD_SIZE", std::to_string(size)},
          {"MASTER_ADDR", loopback_host()},
          {"MASTER_PORT", std::to_string(port)},
          {kTokenVariable, token},
          {"TORCHELASTIC_USE_AGENT_STORE", std::nullopt},
          {"OMPI_COMM_WORLD_SIZE", std::nullopt}};
}

std::unique_ptr<Processes> connect(const Launch& launch, const Clock& clock) {
  switch (launch.kind) {
    case Launch::Kind::kAlone:
      return nullptr;
    case Launch::Kind::kMpi:
      return connect_by_mpi(clock);
    case Launch::Kind::kSockets:
      return connect_by_sockets(launch.rendezvous, clock);
  }
  return nullptr;
}

std::string first_host(const std::string& slurm_node_list) {
  const std::size_t end = slurm_node_list.find_first_of(",[");
  std::string host = slurm_node_list.substr(0, end);
  if (end == std::string::npos || slurm_node_list[end] == ',') return host;
  const std::size_t number_end = slurm_node_list.find_first_of("-,]", end);
  return host + slurm_node_list.substr(end + 1, number_end - end - 1);
}

}  // namespace krigtune::engine
