// Configurations are timed in blocks. Those of a block that are faster than the best sure one are sorted, the fastest
// first, and their memory is predicted piece by piece until one surely fits.
#include "fleet/fastest.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cost/time/step_cost.h"
#include "forecast/forecast.h"
#include "forecast/plan_study.h"

namespace krigtune::fleet {
namespace {

constexpr std::size_t kTimedBlock = 2'000;
constexpr std::size_t kPiecePerThread = 16;

struct Timed {
  space::Configuration configuration;
  double samples_per_s = 0.0;  ///< 0: not predicted
  std::optional<plan::MemoryVerdict> memory = std::nullopt;

  bool surely_fits() const { return !memory || memory->verdict == plan::Verdict::kFits; }
  bool likely_fits() const { return surely_fits() || memory->probability_fits >= 0.5; }
};

class Finder {
 public:
  Finder(const session::Session& session, const session::MemoryFilter& filter, unsigned threads)
      : session_(session),
        filter_(filter),
        threads_(std::max(threads, 1U)),
        model_(*session.workload, session.cluster) {}

  Fastest of_the_space() {
    const space::Space& space = session_.space;
    const std::optional<std::int64_t> count = space.listable() ? std::optional(space.count()) : std::nullopt;
    forecast::for_each_examined(space, count, [this](const space::Configuration& one) { add(one); });
    finish_block();
    return std::move(fastest_);
  }

 private:
  void add(const space::Configuration& configuration) {
    block_.push_back({configuration});
    ++fastest_.looked_at;
    if (block_.size() == kTimedBlock) finish_block();
  }

  void finish_block() {
    run_side_by_side(threads_, [this](std::size_t thread) {
      for (std::size_t i = thread; i < block_.size(); i += threads_) time(block_[i]);
    });
    std::erase_if(block_, [this](const Timed& one) { return one.samples_per_s <= sure_samples_per_s_; });
    std::ranges::stable_sort(block_, std::ranges::greater(), &Timed::samples_per_s);
    bool is_done = false;
    const std::size_t piece = threads_ * kPiecePerThread;
    for (std::size_t begin = 0; begin < block_.size() && !is_done; begin += piece) {
      const std::size_t end = std::min(begin + piece, block_.size());
      run_side_by_side(threads_, [&, this](std::size_t thread) {
        for (std::size_t i = begin + thread; i < end; i += threads_)
          block_[i].memory = filter_.check(block_[i].configuration);
      });
      for (std::size_t i = begin; i < end && !is_done; ++i) is_done = keep(block_[i]);
    }
    block_.clear();
  }

  void time(Timed& one) const {
    const space::Configuration modelled = session::modelled_part(one.configuration);
    const std::optional<cost::StepCost> cost = model_.if_modelled(modelled);
    if (!cost) return;
    one.samples_per_s = static_cast<double>(forecast::sequences_per_step(session_, modelled)) / cost->step_time_s;
  }

  // Returns whether it surely fits: then no slower one matters.
  bool keep(const Timed& one) {
    if (one.likely_fits() && one.samples_per_s > likely_samples_per_s_) {
      fastest_.likely = one.configuration;
      likely_samples_per_s_ = one.samples_per_s;
    }
    if (!one.surely_fits()) return false;
    fastest_.sure = one.configuration;
    sure_samples_per_s_ = one.samples_per_s;
    return true;
  }

  const session::Session& session_;
  const session::MemoryFilter& filter_;
  unsigned threads_;
  cost::StepCostModel model_;
  std::vector<Timed> block_;
  Fastest fastest_;
  double sure_samples_per_s_ = 0.0;
  double likely_samples_per_s_ = 0.0;
};

}  // namespace

Fastest find_fastest(const session::Session& session, const session::MemoryFilter& filter, unsigned threads) {
  return Finder(session, filter, threads).of_the_space();
}

}  // namespace krigtune::fleet
