#include "diagnose/measured_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.h"

namespace krigtune::diagnose {
namespace {

double threshold_of(Limit limit, const Thresholds& thresholds) {
  if (limit == Limit::kCompute) return thresholds.compute;
  if (limit == Limit::kMemoryBandwidth) return thresholds.memory_bandwidth;
  return thresholds.share;
}

}  // namespace

std::vector<Verdict> verdicts_of(const MeasuredParts& measured, const Thresholds& thresholds) {
  std::vector<Verdict> verdicts;
  for (const Part& part : measured.parts) {
    if (!part.limit) continue;
    auto verdict = std::find_if(verdicts.begin(), verdicts.end(),
                                [&](const Verdict& other) { return other.limit == *part.limit; });
    if (verdict == verdicts.end()) {
      verdicts.emplace_back();
      verdict = verdicts.end() - 1;
      verdict->limit = *part.limit;
      verdict->threshold = threshold_of(*part.limit, thresholds);
      verdict->measured = true;
      verdict->sentence = part.meaning;
    }
    verdict->quantity += (verdict->quantity.empty() ? "(" : " + ") + part.name;
    verdict->number += part.seconds / measured.span_s;
  }
  verdicts.erase(std::remove_if(verdicts.begin(), verdicts.end(),
                                [](const Verdict& verdict) { return verdict.number < verdict.threshold; }),
                 verdicts.end());
  for (Verdict& verdict : verdicts) {
    verdict.share = verdict.number;
    verdict.quantity += ") / " + measured.subject;
    const double seconds = verdict.share * measured.span_s / measured.steps;
    verdict.sentence = fmt::format("{} a step: {}", duration_text(seconds), verdict.sentence);
  }
  sort_verdicts(verdicts, thresholds);
  return verdicts;
}

}  // namespace krigtune::diagnose
