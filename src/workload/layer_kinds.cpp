#include "workload/layer_kinds.h"

#include <algorithm>
#include <array>
#include <string>

namespace krigtune::workload {
namespace {

struct CountedKind {
  LayerKind kind;
  std::int64_t LayerCounts::*layers;
};

constexpr auto kCounted = std::to_array<CountedKind>({
    {{Mixer::kAttention, FeedForward::kMlp}, &LayerCounts::attention_mlp},
    {{Mixer::kMamba, FeedForward::kMlp}, &LayerCounts::mamba_mlp},
    {{Mixer::kDelta, FeedForward::kMlp}, &LayerCounts::delta_mlp},
    {{Mixer::kNone, FeedForward::kMlp}, &LayerCounts::mlp},
    {{Mixer::kMamba, FeedForward::kNone}, &LayerCounts::mamba},
    {{Mixer::kDelta, FeedForward::kNone}, &LayerCounts::delta},
    {{Mixer::kAttention, FeedForward::kNone}, &LayerCounts::attention},
    {{Mixer::kNone, FeedForward::kExperts}, &LayerCounts::experts},
    {{Mixer::kMamba, FeedForward::kExperts}, &LayerCounts::mamba_experts},
    {{Mixer::kDelta, FeedForward::kExperts}, &LayerCounts::delta_experts},
    {{Mixer::kAttention, FeedForward::kExperts}, &LayerCounts::attention_experts},
});

}  // namespace

std::string to_string(const LayerKind& kind) {
  static constexpr std::array<const char*, 4> kMixers = {"", "attention", "Mamba-2", "a gated delta rule"};
  static constexpr std::array<const char*, 3> kFeedForwards = {"", "an MLP", "experts"};
  const std::string mixer = kMixers.at(static_cast<std::size_t>(kind.mixer));
  const std::string feed_forward = kFeedForwards.at(static_cast<std::size_t>(kind.feed_forward));
  return mixer.empty() || feed_forward.empty() ? mixer + feed_forward : mixer + " and " + feed_forward;
}

std::int64_t LayerCounts::sum() const {
  std::int64_t layers = 0;
  for (const CountedKind& counted : kCounted) layers += this->*counted.layers;
  return layers;
}

std::vector<LayersOfKind> LayerCounts::kinds() const {
  std::vector<LayersOfKind> found;
  for (const CountedKind& counted : kCounted) {
    if (this->*counted.layers > 0) found.push_back({counted.kind, this->*counted.layers});
  }
  return found;
}

std::int64_t& LayerCounts::of(const LayerKind& kind) {
  const auto counted =
      std::find_if(kCounted.begin(), kCounted.end(), [&](const CountedKind& one) { return one.kind == kind; });
  return this->*counted->layers;
}

}  // namespace krigtune::workload
