// The table of DeepSpeed's versions. It comes from the source at the tags v0.5.7 to v0.19.5 (the first tag with a
// change) and from the pull requests that are named. It has only changes that affect a trial or a comparison with the
// stock autotuner.
#include "deepspeed/job/ds_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace krigtune::deepspeed {
namespace {

constexpr DsVersion kOpen{999, 0, 0};  // still true today

struct VersionRow {
  DsFeature feature;
  DsVersion since;
  DsVersion until;  // the first version without it
};

constexpr std::array kTable = {
    VersionRow{DsFeature::kStageListHonoured, {0, 9, 3}, kOpen},        // #3473
    VersionRow{DsFeature::kOnlyStageZeroByDefault, {0, 10, 0}, kOpen},  // all four stages before
    VersionRow{DsFeature::kShortMetricKeys, {0, 10, 1}, kOpen},
    VersionRow{DsFeature::kLatencyOfWholeStep, {0, 10, 3}, kOpen},      // #2888
    VersionRow{DsFeature::kAllgatherBucketDead, {0, 12, 4}, kOpen},     // #4705: all_gather_into_tensor
    VersionRow{DsFeature::kFullModeBroken, {0, 13, 2}, kOpen},          // #4996: KeyError 'hostfile'
    VersionRow{DsFeature::kTensorParallelTraining, {0, 16, 4}, kOpen},  // requested by tensor_parallel.autotp_size
    VersionRow{DsFeature::kQuietTimerLines, {0, 17, 6}, {0, 18, 0}},    // the logger's default level became WARNING
    VersionRow{DsFeature::kTimerLinesPrinted, {0, 18, 0}, kOpen},       // print instead of the logger
    VersionRow{DsFeature::kTensorParallelPresets, {0, 18, 6}, kOpen},
    VersionRow{DsFeature::kLogLevelKey, {0, 19, 3}, kOpen},
    VersionRow{DsFeature::kTensorParallelAtStage3, {0, 19, 4}, kOpen},  // an assertion before
    VersionRow{DsFeature::kOffloadPinnedByDefault, {0, 19, 5}, kOpen},
};

// The protocol itself (exit after the profile window, csv_monitor, a path as configuration) is older. From this version
// on the stock autotuner honours the user's stages, and a machine without GPUs is enough.
constexpr DsVersion kOldest{0, 9, 3};

// Versions that were run here, on CPU ranks, with torch 2.15.
constexpr std::array<DsVersion, 4> kRunHere = {{{0, 19, 8}, {0, 17, 6}, {0, 16, 9}, {0, 14, 4}}};

// Reads digits into `number` and returns the text after them; nullopt if there are none.
std::optional<std::string_view> after_number(std::string_view text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  return text.substr(static_cast<std::size_t>(end - text.data()));
}

// Reads three numbers at the beginning of a line, followed by its end or a local part ("+cu121", "rc1").
std::optional<DsVersion> version_at_line(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line[first] < '0' || line[first] > '9') return std::nullopt;
  std::string_view rest = line.substr(first);
  DsVersion version;
  for (int* number : {&version.major, &version.minor, &version.patch}) {
    if (number != &version.major) {
      if (rest.empty() || rest.front() != '.') return std::nullopt;
      rest.remove_prefix(1);
    }
    const std::optional<std::string_view> behind = after_number(rest, *number);
    if (!behind) return std::nullopt;
    rest = *behind;
  }
  // A word of a log ("12.5.3 s since ...") is followed by a blank, a version is not.
  const bool is_alone = rest.find_first_not_of(" \t\r") == std::string_view::npos || rest.front() != ' ';
  return is_alone ? std::optional(version) : std::nullopt;
}

}  // namespace

std::string to_string(const DsVersion& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

std::optional<DsVersion> version_of(std::string_view text) {
  std::optional<DsVersion> last;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::optional<DsVersion> version = version_at_line(text.substr(0, end))) last = version;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return last;
}

bool has(const DsVersion& version, DsFeature feature) {
  const auto* row =
      std::find_if(kTable.begin(), kTable.end(), [&](const VersionRow& r) { return r.feature == feature; });
  return row != kTable.end() && row->since <= version && version < row->until;
}

DsSupport support_of(const DsVersion& version) {
  if (version < kOldest) return DsSupport::kTooOld;
  const bool was_run = std::find(kRunHere.begin(), kRunHere.end(), version) != kRunHere.end();
  return was_run ? DsSupport::kRun : DsSupport::kByTable;
}

std::string version_remark(const DsVersion& version) {
  switch (support_of(version)) {
    case DsSupport::kRun:
      return "";
    case DsSupport::kByTable:
      return fmt::format("DeepSpeed {} is known by its source only: trials were run on 0.19.8, 0.17.6, 0.16.9, 0.14.4",
                         to_string(version));
    case DsSupport::kTooOld:
      return fmt::format("DeepSpeed {} is too old: install {} or newer (pip install -U deepspeed)", to_string(version),
                         to_string(kOldest));
  }
  return "";
}

}  // namespace krigtune::deepspeed
