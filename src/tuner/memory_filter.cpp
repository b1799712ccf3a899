#include "krigtune/tuner/memory_filter.h"

#include <mutex>
#include <string>
#include <unordered_map>

namespace krigtune {

struct MemoryFilter::Impl {
  std::optional<Workload> workload;
  ClusterSpec cluster;
  std::optional<Bytes> usable;
  std::mutex mutex;  // of known
  std::unordered_map<std::string, MemoryCheck> known;
};

MemoryFilter::MemoryFilter(const Session& session) : impl_(std::make_unique<Impl>()) {
  impl_->workload = session.workload;
  impl_->cluster = session.cluster;
  impl_->usable = session.usable_per_rank;
}

MemoryFilter::~MemoryFilter() = default;

bool MemoryFilter::knows_memory() const { return impl_->workload && impl_->usable; }

std::optional<MemoryCheck> MemoryFilter::check(const Configuration& configuration) const {
  if (!knows_memory()) return std::nullopt;
  const std::string key = configuration.text();
  {
    const std::lock_guard lock(impl_->mutex);
    if (const auto found = impl_->known.find(key); found != impl_->known.end()) return found->second;
  }
  MemoryCheck check;
  check.report = explain(build_plan(*impl_->workload, impl_->cluster, configuration));
  check.verdict = exact_verdict({check.report.peak_bytes}, *impl_->usable);
  const std::lock_guard lock(impl_->mutex);
  impl_->known.emplace(key, check);
  return check;
}

bool MemoryFilter::may_fit(const Configuration& configuration) const {
  const std::optional<MemoryCheck> known = check(configuration);
  return !known || known->verdict.verdict != Verdict::kTooLarge;
}

}  // namespace krigtune
