// As deepspeed/launcher/runner.py (fetch_hostfile, parse_resource_filter; DeepSpeed 0.19) and mpirun read them.
#include "deepspeed/hostfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "command_words.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

auto find_host(std::vector<HostSlots>& hosts, std::string_view name) {
  return std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& one) { return one.host == name; });
}

std::optional<HostSlots> host_in(std::string_view line) {
  constexpr std::string_view kSlots = "slots=";
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view first = line.substr(0, blank);
  const std::string rest = trimmed(line.substr(blank));
  const std::size_t colon = first.find(':');
  if (rest.empty()) {
    const auto count =
        colon == std::string_view::npos ? std::optional<std::int64_t>(1) : count_in(first.substr(colon + 1));
    return count ? std::optional<HostSlots>({std::string(first.substr(0, colon)), *count}) : std::nullopt;
  }
  if (rest.rfind(kSlots, 0) != 0) return std::nullopt;
  const std::string number = rest.substr(kSlots.size(), rest.find_first_of(" \t") - kSlots.size());
  const auto count = count_in(number);
  return count ? std::optional<HostSlots>({std::string(first), *count}) : std::nullopt;
}

// One of the hosts that a filter names.
struct Filter {
  std::string_view host;
  std::optional<std::int64_t> slots;  ///< empty: all
};

std::vector<Filter> filters_in(std::string_view text) {
  std::vector<Filter> filters;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('@'));
    const std::size_t colon = one.find(':');
    const bool is_listed = colon != std::string_view::npos;
    filters.push_back(
        {one.substr(0, colon),
         is_listed ? std::optional(1 + std::count(one.begin() + static_cast<std::ptrdiff_t>(colon), one.end(), ','))
                   : std::nullopt});
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return filters;
}

HostSlots& host_of(std::vector<HostSlots>& hosts, std::string_view name, const char* option) {
  const auto found = find_host(hosts, name);
  if (found != hosts.end()) return *found;
  throw UserError(fmt::format("{}: the host '{}' is not in the hostfile", option, name),
                  "name one of its hosts; without a hostfile the only one is localhost");
}

}  // namespace

std::vector<HostSlots> read_hostfile(const std::filesystem::path& file) {
  std::vector<HostSlots> hosts;
  const std::string text = read_text(file);
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view whole = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(whole.size() + 1, rest.size()));
    const std::string line = trimmed(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const std::optional<HostSlots> host = host_in(line);
    if (!host || find_host(hosts, host->host) != hosts.end()) {
      throw UserError(
          fmt::format("{}:{}: '{}' is no host with its slots, or stands there twice", file.string(), number, line),
          "write a line for each, as in: worker-1 slots=8");
    }
    hosts.push_back(*host);
  }
  if (hosts.empty()) throw UserError(fmt::format("{}: the hostfile names no host", file.string()), "worker-1 slots=8");
  return hosts;
}

std::vector<HostSlots> chosen_hosts(std::vector<HostSlots> hosts, std::string_view include, std::string_view exclude) {
  if (!include.empty()) {
    std::vector<HostSlots> chosen;
    for (const Filter& filter : filters_in(include)) {
      const HostSlots& host = host_of(hosts, filter.host, "--include");
      chosen.push_back({host.host, filter.slots.value_or(host.slots)});
    }
    return chosen;
  }
  for (const Filter& filter : filters_in(exclude)) {
    HostSlots& host = host_of(hosts, filter.host, "--exclude");
    host.slots -= filter.slots.value_or(host.slots);
  }
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots <= 0; });
  return hosts;
}

}  // namespace krigtune
