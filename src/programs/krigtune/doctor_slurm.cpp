#include "programs/krigtune/doctor_slurm.h"

#include "executor/slurm_facts.h"

namespace krigtune::cli {

Finding examine_slurm(const Console& console) {
  constexpr const char* kName = "Slurm";
  const std::optional<executor::SlurmFacts> facts = executor::slurm_facts(console.clock);
  if (!facts) return {kName, Health::kSkip, "no sbatch on PATH", "trials run on this machine"};
  const Health health = facts->complaint.empty() ? Health::kOk : Health::kWarn;
  return {kName, health, executor::facts_text(*facts), executor::consequence_text(*facts)};
}

}  // namespace krigtune::cli
