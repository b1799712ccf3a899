#include "zero/zero_setting.h"

namespace krigtune {

std::vector<Bucket> ZeroSetting::make_buckets(const std::vector<int>& order, std::int64_t most_elems) const {
  std::vector<Bucket> buckets;
  std::int64_t elems = 0;
  for (const int t : order) {
    if (buckets.empty() || elems + tensor(t).elems > most_elems) {
      buckets.emplace_back();
      elems = 0;
    }
    buckets.back().push_back(t);
    elems += tensor(t).elems;
  }
  return buckets;
}

void Window::enter(OpId op) {
  entered_.push_back(op);
  if (width_ < entered_.size()) builder_.hold_compute_for(entered_[entered_.size() - 1 - width_]);
}

}  // namespace krigtune
