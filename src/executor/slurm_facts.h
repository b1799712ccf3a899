#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"

namespace krigtune::executor {

/// What Slurm is here, for krigtune doctor.
struct SlurmFacts {
  struct Partition {
    std::string name;
    bool is_default = false;
    bool is_up = true;
    std::string time_limit;  ///< "1:00:00", "infinite"
    int nodes = 0;
    int usable_nodes = 0;  ///< neither down nor drained
    std::string gres;      ///< of its nodes: "gpu:h100:8"; "": none
  };
  std::string version;    ///< "22.05.8"
  std::string complaint;  ///< not empty: the controller does not answer, and what was said
  std::vector<Partition> partitions;
  bool has_accounting = false;
  std::string enforced;                 ///< AccountingStorageEnforce: "limits,qos"; "": nothing
  std::optional<double> min_job_age_s;  ///< for how long the controller knows a job that has ended
  std::string job;                      ///< SLURM_JOB_ID; "": not in an allocation
  std::string job_nodes;                ///< "n[1-4]"
};

/// Empty: sbatch is not on PATH. Starts sbatch, sinfo and scontrol; takes a minute at most where nobody answers.
std::optional<SlurmFacts> slurm_facts(const Clock& clock);

/// sinfo -h -o '%P|%a|%l|%D|%t|%G': a line for each partition and state of its nodes. Pure.
std::vector<SlurmFacts::Partition> parse_partitions(std::string_view text);
/// Fills accounting and MinJobAge of `scontrol show config`. Pure.
void read_slurm_config(std::string_view text, SlurmFacts& facts);
/// "22.05.8; gpu* (4 of 4 nodes, gpu:h100:8, no time limit), ...; no accounting".
std::string facts_text(const SlurmFacts& facts);
/// What a session with the executor slurm would do here.
std::string consequence_text(const SlurmFacts& facts);

}  // namespace krigtune::executor
