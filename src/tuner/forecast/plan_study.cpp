// Configurations are looked at in blocks: the members of a block at the same time, their results one after another.
#include "krigtune/tuner/plan_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <limits>
#include <thread>

#include "krigtune/cost/framework.h"
#include "krigtune/space/parameter_names.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMostStudied = 1'000'000;
constexpr int kSampled = 10'000;
constexpr std::uint64_t kSampleSeed = 1;
constexpr std::size_t kForecastBlock = 2'000;
constexpr std::size_t kBest = 10;
constexpr std::size_t kKept = 400;  // similar ones of the best among them
constexpr double kAlike = 0.005;
constexpr double kLikely = 0.5;

// Sets what counting alone says.
void count_space(const Session& session, PlanStudy& study) {
  std::int64_t left = 0;
  for (const ExclusionCount& excluded : session.space.exclusions()) {
    if (excluded.reason == Exclusion::kNone) {
      left = excluded.count;
    } else if (excluded.count > 0) {
      const bool no_row = excluded.reason == Exclusion::kRestricted && session.table != nullptr;
      const std::string reason = no_row ? "not in the table" : to_string(excluded.reason);
      study.excluded.emplace_back(excluded.constraint.empty() ? reason : reason + " " + excluded.constraint,
                                  excluded.count);
    }
  }
  study.configurations = session.space.count();
  study.same_meaning = left - *study.configurations;
}

// Forecasts of all of them, by several threads.
void forecast_all(const Forecaster& forecaster, unsigned threads, std::vector<Candidate>& block) {
  std::vector<std::exception_ptr> errors(threads);
  const auto work = [&](unsigned thread) {
    try {
      for (std::size_t i = thread; i < block.size(); i += threads) {
        block[i].forecast = forecaster(block[i].configuration);
      }
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// The candidates of the largest scores, the earlier of equals first.
class BestFew {
 public:
  explicit BestFew(const Forecaster& forecaster) : forecaster_(forecaster) {}

  void add(const Candidate& candidate) {
    const double score = forecaster_.score(candidate.forecast);
    if (best_.size() == kKept && score <= best_.back().first) return;
    const auto after = std::upper_bound(best_.begin(), best_.end(), score,
                                        [](double value, const auto& scored) { return value > scored.first; });
    best_.emplace(after, score, candidate);
    if (best_.size() > kKept) best_.pop_back();
  }

  /// Those that are no better than a better one with one parameter changed are counted there.
  std::vector<Candidate> take() const {
    std::vector<std::pair<double, Candidate>> shown;
    for (const std::pair<double, Candidate>& next : best_) {
      const auto alike = std::find_if(shown.begin(), shown.end(), [&](const auto& better) {
        return better.first - next.first <= kAlike * std::abs(better.first) &&
               differences(better.second.configuration, next.second.configuration) == 1;
      });
      if (alike != shown.end()) {
        ++alike->second.similar;
      } else if (shown.size() < kBest) {
        shown.push_back(next);
      }
    }
    std::vector<Candidate> candidates;
    for (auto& [score, candidate] : shown) candidates.push_back(std::move(candidate));
    return candidates;
  }

 private:
  // Names whose values are not the same.
  static int differences(const Configuration& a, const Configuration& b) {
    int count = 0;
    for (const auto& [name, value] : a) {
      const Value* other = b.find(name);
      if (other == nullptr || !same_value(value, *other)) ++count;
    }
    for (const auto& [name, value] : b) count += a.has(name) ? 0 : 1;
    return count;
  }

  const Forecaster& forecaster_;
  std::vector<std::pair<double, Candidate>> best_;
};

/// One walk over the space.
class Study {
 public:
  Study(const Session& session, const Forecaster& forecaster, const StudyOptions& options)
      : session_(session), forecaster_(forecaster), options_(options), likely_(forecaster), possible_(forecaster) {}

  PlanStudy of_the_space() {
    const Space& space = session_.space;
    study_.lattice = space.lattice_count();
    if (space.listable()) count_space(session_, study_);
    if (study_.configurations && *study_.configurations <= kMostStudied) {
      expected_ = *study_.configurations;
      space.for_each([this](const Configuration& configuration) { return look_at(configuration), true; });
    } else {
      expected_ = kSampled;
      Rng rng(kSampleSeed, 0);
      for (int i = 0; i < kSampled; ++i) look_at(space.sample(rng));
    }
    finish_block();
    study_.best = likely_.take();
    if (study_.best.empty()) study_.best = possible_.take();
    std::sort(study_.step_times_s.begin(), study_.step_times_s.end());
    return std::move(study_);
  }

 private:
  void look_at(const Configuration& configuration) {
    block_.push_back({configuration, {}});
    if (block_.size() == kForecastBlock) finish_block();
  }

  void finish_block() {
    forecast_all(forecaster_, std::max(options_.threads, 1U), block_);
    for (const Candidate& candidate : block_) add(candidate);
    block_.clear();
    if (options_.progress) options_.progress(study_.looked_at(), expected_);
  }

  void add(const Candidate& candidate) {
    const std::optional<MemoryVerdict>& memory = candidate.forecast.memory;
    study_.counts.add(memory);
    if (memory) add_to_stage(candidate, *memory);
    if (options_.visit) options_.visit(candidate);
    if (!candidate.forecast.cost) return;
    const auto& limitless = study_.best_without_limit;
    if (!limitless || forecaster_.score(candidate.forecast) > forecaster_.score(limitless->forecast)) {
      study_.best_without_limit = candidate;
    }
    if (memory && memory->verdict == Verdict::kTooLarge) return;
    study_.step_times_s.push_back(candidate.forecast.cost->step_time_s);
    possible_.add(candidate);
    if (!memory || memory->probability_fits >= kLikely) likely_.add(candidate);
  }

  // Larger is the better example.
  std::array<double, 3> quality(const Candidate& candidate, const MemoryVerdict& memory) const {
    const bool is_fast = candidate.forecast.cost && memory.probability_fits >= kLikely;
    const double lowest = std::numeric_limits<double>::lowest();
    return {is_fast ? forecaster_.score(candidate.forecast) : lowest,
            -static_cast<double>(candidate.configuration.integer(kMicroBatch, 1)),
            -static_cast<double>(memory.predicted.count)};
  }

  std::int64_t stage_of(const Configuration& configuration) const {
    const auto& workload = session_.workload;
    return (workload ? with_usual_settings(*workload, configuration) : configuration).integer(kZeroStage, 0);
  }

  void add_to_stage(const Candidate& candidate, const MemoryVerdict& memory) {
    const std::int64_t number = stage_of(candidate.configuration);
    StageMemory& stage = study_.stages[number];
    const bool first = stage.counts.all() == 0;
    const std::array<double, 3> its = quality(candidate, memory);
    if (first || its > examples_[number]) {
      examples_[number] = its;
      stage.example = candidate.configuration;
    }
    stage.smallest = first ? memory.predicted : std::min(stage.smallest, memory.predicted);
    stage.largest = std::max(stage.largest, memory.predicted);
    stage.counts.add(memory);
  }

  const Session& session_;
  const Forecaster& forecaster_;
  const StudyOptions& options_;
  PlanStudy study_;
  std::vector<Candidate> block_;
  BestFew likely_;
  BestFew possible_;
  std::map<std::int64_t, std::array<double, 3>> examples_;  // quality, by zero_stage
  std::int64_t expected_ = 0;
};

}  // namespace

void VerdictCounts::add(const std::optional<MemoryVerdict>& memory) {
  if (!memory) {
    ++unknown;
    return;
  }
  switch (memory->verdict) {
    case Verdict::kFits:
      ++fit;
      break;
    case Verdict::kUncertain:
      ++uncertain;
      expected_to_run += memory->probability_fits;
      break;
    case Verdict::kTooLarge:
      ++too_large;
      break;
  }
}

PlanStudy study_plan(const Session& session, const Forecaster& forecaster, const StudyOptions& options) {
  return Study(session, forecaster, options).of_the_space();
}

}  // namespace krigtune
