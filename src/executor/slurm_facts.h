#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// The facts about Slurm on this machine, for krigtune doctor.
struct SlurmFacts {
  struct Partition {
    std::string name;
    bool is_default = false;
    bool is_up = true;
    std::string time_limit;  ///< "1:00:00", "infinite"
    int nodes = 0;
    int usable_nodes = 0;  ///< neither down nor drained
    std::string gres;      ///< GRES of its nodes: "gpu:h100:8"; "": none
  };
  std::string version;    ///< "22.05.8"
  std::string complaint;  ///< if not empty, the controller does not answer, and this is its message
  std::vector<Partition> partitions;
  bool has_accounting = false;
  std::string enforced;                 ///< AccountingStorageEnforce: "limits,qos"; "": nothing
  std::optional<double> min_job_age_s;  ///< how long the controller knows an ended job
  std::string job;                      ///< SLURM_JOB_ID; "": not in an allocation
  std::string job_nodes;                ///< "n[1-4]"
};

/// Returns nothing if sbatch is not on PATH. Starts sbatch, sinfo and scontrol; takes at most a minute if nobody
/// answers.
std::optional<SlurmFacts> slurm_facts(const Clock& clock);

/// Parses sinfo -h -o '%P|%a|%l|%D|%t|%G', which prints a line for each partition and state of its nodes. Pure.
std::vector<SlurmFacts::Partition> parse_partitions(std::string_view text);
/// Fills in accounting and MinJobAge from the output of `scontrol show config`. Pure.
void read_slurm_config(std::string_view text, SlurmFacts& facts);
/// Returns "22.05.8; gpu* (4 of 4 nodes, gpu:h100:8, no time limit), ...; no accounting".
std::string facts_text(const SlurmFacts& facts);
/// Returns what a session with the executor slurm would do here.
std::string consequence_text(const SlurmFacts& facts);

}  // namespace krigtune::executor
