// Bandwidths are the line rates of the standards. Latencies of a collective's launch: S. Bekman, "Machine Learning
// Engineering Open Book" (github.com/stas00/ml-engineering, network/README.md): 30 us over TCP, 12 us for 100 GbE cards
// (RoCE), 5 us for InfiniBand.
#include "networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

constexpr double kMicroseconds = 1e6;

struct Line {
  std::string_view id;
  double latency_us;
  double bits_per_s;
};
constexpr std::array kLines = {
    Line{"eth-10", 30.0, 10e9},     Line{"eth-25", 30.0, 25e9},     Line{"eth-100", 12.0, 100e9},
    Line{"ib-edr-100", 5.0, 100e9}, Line{"ib-hdr-200", 5.0, 200e9}, Line{"ib-ndr-400", 5.0, 400e9},
};

EmulatedNetwork known_network(const std::string& id, const std::string& where) {
  const std::string wanted = lower_case(id);
  for (const Line& line : kLines) {
    if (line.id == wanted) return {wanted, line.latency_us / kMicroseconds, line.bits_per_s / 8.0};
  }
  throw UserError(fmt::format("{}: the network '{}' is not known", where, id), suggestion(wanted, network_names()));
}

bool is_known(const std::string& id) {
  return std::any_of(kLines.begin(), kLines.end(), [&](const Line& line) { return line.id == id; });
}

// The microseconds whose millionth is exactly `latency_s`: 30, not 30.000000000000004.
double microseconds(double latency_s) {
  const double raw = latency_s * kMicroseconds;
  const double rounded = std::round(raw * kMicroseconds) / kMicroseconds;
  return rounded / kMicroseconds == latency_s ? rounded : raw;
}

}  // namespace

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Line& line : kLines) names.emplace_back(line.id);
  return names;
}

EmulatedNetwork read_network(const Json& json, const std::string& source, const std::string& pointer) {
  if (json.is_string()) return known_network(json.get<std::string>(), source + ": " + pointer);
  JsonObject object(json, source, pointer);
  const std::optional<double> latency_us = object.optional_number("latency_us");
  const std::optional<double> bytes_per_s = object.optional_number("bytes_per_s");
  object.finish();
  if (!latency_us || *latency_us < 0.0) {
    object.fail("latency_us", "a latency of 0 or more is needed", "write for example 30");
  }
  if (!bytes_per_s || *bytes_per_s <= 0.0) {
    object.fail("bytes_per_s", "a bandwidth above 0 is needed", "write for example 3e9");
  }
  const std::string name = fmt::format("{} us + {} MB/s", number_text(*latency_us), number_text(*bytes_per_s / 1e6));
  return {name, *latency_us / kMicroseconds, *bytes_per_s};
}

Json to_json(const EmulatedNetwork& network) {
  if (is_known(network.name)) return network.name;
  return {{"latency_us", json_number(microseconds(network.latency_s))},
          {"bytes_per_s", json_number(network.bytes_per_s)}};
}

}  // namespace krigtune
