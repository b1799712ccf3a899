#pragma once
#include <string>
#include <utility>
#include <vector>

#include "workload/workload.h"

namespace krigtune::workload {

/// Environment variables of a job: names and values.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// Adds what the variables of a job change in what is predicted. One list of names serves all frameworks:
/// - those that change time or memory are named with the direction: "NCCL_P2P_DISABLE=1: slower collectives ...";
/// - those that change nothing (logging, caches, ranks) are left out;
/// - of those that nobody knows it is assumed that they change nothing, unless a trial sets them by a placeholder: they
/// are then parameters of the search. Values of these are not repeated, because they may be secrets.
///
/// `offloads`: configurations may update parameters on the host, whose threads then count.
void add_variables(const Variables& variables, Framework framework, bool offloads, Caveats& caveats);

}  // namespace krigtune::workload
