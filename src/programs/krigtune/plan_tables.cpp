// The tables of `krigtune plan`. Titles are split over several lines, so that long parameter names do not widen
// columns.
#include "programs/krigtune/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "report/labels.h"

namespace krigtune::cli {
namespace {

constexpr std::size_t kTextWidth = 100;

report::Cell bytes_cell(std::int64_t bytes) { return {to_string(Bytes{bytes}), space::Value(bytes)}; }
report::Cell count_cell(std::int64_t count) { return {fmt::format("{}", count), space::Value(count)}; }
report::Cell seconds_cell(double seconds) { return {duration_text(seconds), space::Value(seconds)}; }

report::Cell rate_cell(double rate) { return {report::rate_text(rate), space::Value(rate)}; }

report::Cell fits_cell(const std::optional<plan::MemoryVerdict>& memory) {
  if (!memory) return report::text_cell("not known");
  if (memory->verdict == plan::Verdict::kFits) return report::text_cell("yes");
  if (memory->verdict == plan::Verdict::kTooLarge) return report::text_cell("no");
  return report::text_cell(fmt::format("{:.0f} %", 100.0 * memory->probability_fits));
}

report::Cell memory_cell(const std::optional<plan::MemoryVerdict>& memory) {
  return memory ? bytes_cell(memory->predicted.count) : report::text_cell("");
}

/// A table whose titles have their words one below the other: all but the last are rows of their own.
class TallTable {
 public:
  explicit TallTable(std::string name) { table_.name = std::move(name); }

  void column(const std::string& name, const std::string& words, bool right = true) {
    std::vector<std::string> lines;
    std::size_t begin = 0;
    while (begin <= words.size()) {
      const std::size_t end = std::min(words.find_first_of(" _", begin), words.size());
      lines.push_back(words.substr(begin, end - begin));
      begin = end + 1;
    }
    titles_.push_back(lines);
    table_.columns.push_back({name, "", right});
  }
  void row(std::vector<report::Cell> cells) { rows_.push_back(std::move(cells)); }

  report::Table table() && {
    std::size_t height = 0;
    for (const auto& lines : titles_) height = std::max(height, lines.size());
    const auto title = [&](std::size_t column, std::size_t line) {
      const std::size_t blank = height - titles_[column].size();
      return line < blank ? std::string() : titles_[column][line - blank];
    };
    for (std::size_t c = 0; c < titles_.size(); ++c) table_.columns[c].title = title(c, 0);
    for (std::size_t line = 1; line < height; ++line) {
      std::vector<report::Cell> cells;
      for (std::size_t c = 0; c < titles_.size(); ++c) cells.push_back(report::text_cell(title(c, line)));
      table_.rows.push_back(std::move(cells));
    }
    table_.rows.insert(table_.rows.end(), rows_.begin(), rows_.end());
    return std::move(table_);
  }

 private:
  report::Table table_;
  std::vector<std::vector<std::string>> titles_;
  std::vector<std::vector<report::Cell>> rows_;
};

// Returns whether the parameter has the same value in all candidates, or is absent in all.
bool is_shared(const std::vector<forecast::Candidate>& best, const std::string& name) {
  const space::Value* first = best.front().configuration.find(name);
  return std::all_of(best.begin(), best.end(), [&](const forecast::Candidate& candidate) {
    const space::Value* value = candidate.configuration.find(name);
    return value == nullptr ? first == nullptr : first != nullptr && space::same_value(*value, *first);
  });
}

void add_utilization(const std::optional<cost::Utilization>& used, std::vector<report::Cell>& row) {
  row.push_back(used ? rate_cell(used->tokens_per_s_per_gpu) : report::text_cell(""));
  row.push_back(used ? report::number_cell(used->mfu, report::share_text(used->mfu)) : report::text_cell(""));
}

report::Cell bound_cell(cost::Bottleneck bottleneck) {
  return report::text_cell(bottleneck == cost::Bottleneck::kCommunication ? "comm." : cost::to_string(bottleneck));
}

}  // namespace

bool have_same_bound(const std::vector<forecast::Candidate>& best) {
  return std::all_of(best.begin(), best.end(), [&](const forecast::Candidate& candidate) {
    return candidate.forecast.cost->bottleneck() == best.front().forecast.cost->bottleneck();
  });
}

std::string indented(const std::string& text) {
  std::string result = "  ";
  for (const char c : text.substr(0, text.size() - 1)) result += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return result + "\n";
}

std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t word = std::min(text.find_first_not_of(' ', begin), text.size());
    const std::size_t end = std::min(text.find(' ', word), text.size());
    if (column > 0 && column + end - begin > kTextWidth) {
      result += '\n';
      result.append(indent, ' ');
      column = indent;
      begin = word;
    }
    result += text.substr(begin, end - begin);
    column += end - begin;
    begin = end;
  }
  return result + "\n";
}

report::Table stage_table(const forecast::PlanStudy& study) {
  TallTable table("stages");
  table.column("zero_stage", "ZeRO stage");
  table.column("configurations", "configurations");
  table.column("fit", "fit");
  table.column("uncertain", "uncertain");
  table.column("too_large", "too large");
  table.column("smallest_peak_bytes", "smallest peak");
  table.column("largest_peak_bytes", "largest peak");
  for (const auto& [number, stage] : study.stages) {
    table.row({count_cell(number), count_cell(stage.counts.all()), count_cell(stage.counts.fit),
               count_cell(stage.counts.uncertain), count_cell(stage.counts.too_large), bytes_cell(stage.smallest.count),
               bytes_cell(stage.largest.count)});
  }
  return std::move(table).table();
}

report::Table term_table(const forecast::PlanAnswers& answers, Bytes usable) {
  report::Table table{"terms", {{"term", ""}}, {}, {}};
  for (const auto& [number, terms] : answers.terms) {
    const std::string name = fmt::format("stage {}", number);
    table.columns.push_back({name, name, true});
  }
  const auto add_row = [&](const std::string& title, const auto& bytes_of) {
    std::vector<report::Cell> row = {report::text_cell(title)};
    bool is_needed = false;
    for (const auto& [number, terms] : answers.terms) {
      row.push_back(bytes_cell(bytes_of(terms)));
      is_needed = is_needed || bytes_of(terms) != 0;
    }
    if (is_needed) table.rows.push_back(std::move(row));
  };
  for (std::size_t term = 0; term < schedule::kTermCount; ++term) {
    add_row(schedule::to_string(static_cast<schedule::Term>(term)),
            [term](const forecast::MemoryTerms& terms) { return terms.term_bytes[term]; });
  }
  add_row("context and fragmentation", [](const forecast::MemoryTerms& terms) { return terms.other_bytes; });
  add_row("peak", [](const forecast::MemoryTerms& terms) { return terms.peak.count; });
  add_row("headroom", [usable](const forecast::MemoryTerms& terms) { return (usable - terms.peak).count; });
  return table;
}

std::string shared_text(const session::Session& session, const std::vector<forecast::Candidate>& best) {
  std::vector<std::string> parts;
  for (const std::string& name : session.space.columns()) {
    const space::Value* value = best.front().configuration.find(name);
    if (value != nullptr && is_shared(best, name)) parts.push_back(name + "=" + space::to_string(*value));
  }
  return join(parts, " ");
}

report::Table best_table(const session::Session& session, const std::vector<forecast::Candidate>& best) {
  TallTable table("best");
  std::vector<std::string> varying;
  for (const std::string& name : session.space.columns()) {
    if (!is_shared(best, name)) varying.push_back(name);
  }
  table.column("rank", "");
  for (const std::string& name : varying) table.column(name, name);
  table.column("step_time_s", "step time");
  table.column("samples_per_s", "samples per_s");
  const bool has_utilization = best.front().forecast.utilization.has_value();
  if (has_utilization) table.column("tokens_per_s_per_gpu", "tokens/s per_GPU");
  if (has_utilization) table.column("mfu", "MFU");
  table.column("memory_bytes", "memory");
  table.column("fits", "fits");
  table.column("similar", "alike");
  const bool same_bound = have_same_bound(best);
  if (!same_bound) table.column("bottleneck", "bound by", false);
  for (std::size_t i = 0; i < best.size(); ++i) {
    const forecast::Forecast& forecast = best[i].forecast;
    std::vector<report::Cell> row = {count_cell(static_cast<std::int64_t>(i) + 1)};
    for (const std::string& name : varying) {
      const space::Value* value = best[i].configuration.find(name);
      row.push_back(report::text_cell(value == nullptr ? "-" : report::short_value_text(*value)));
    }
    row.push_back(seconds_cell(forecast.cost->step_time_s));
    row.push_back(rate_cell(forecast.samples_per_s));
    if (has_utilization) add_utilization(forecast.utilization, row);
    row.push_back(memory_cell(forecast.memory));
    row.push_back(fits_cell(forecast.memory));
    const std::int64_t similar = best[i].similar;
    row.push_back(similar > 0 ? report::Cell{fmt::format("+{}", similar), space::Value(similar)}
                              : report::text_cell(""));
    if (!same_bound) row.push_back(bound_cell(forecast.cost->bottleneck()));
    table.row(std::move(row));
  }
  return std::move(table).table();
}

report::Table batch_table(const std::vector<forecast::BatchRow>& rows, bool batch_varies) {
  TallTable table("batch");
  table.column("micro_batch", "micro-batch");
  table.column("gradient_accumulation_steps", "accumulation");
  if (batch_varies) table.column("sequences", "sequences a_step");
  table.column("step_time_s", "step time");
  table.column("samples_per_s", "samples/s");
  table.column("exposed_comm_s", "exposed comm.");
  table.column("memory_bytes", "memory");
  table.column("fits", "fits");
  table.column("plateau", "", false);
  for (const forecast::BatchRow& row : rows) {
    std::vector<report::Cell> cells = {count_cell(row.micro_batch)};
    cells.push_back(count_cell(row.accumulation));
    if (batch_varies) cells.push_back(count_cell(row.sequences));
    cells.insert(cells.end(), {seconds_cell(row.forecast.cost->step_time_s), rate_cell(row.forecast.samples_per_s),
                               seconds_cell(row.forecast.cost->exposed_comm_s), memory_cell(row.forecast.memory),
                               fits_cell(row.forecast.memory), report::text_cell(row.plateau ? "<- plateau" : "")});
    table.row(std::move(cells));
  }
  return std::move(table).table();
}

report::Table volume_table(const std::string& parameter, const std::vector<forecast::Variant>& variants) {
  TallTable table("communication");
  table.column(parameter, parameter);
  table.column("data_wire_bytes", "sent_(data)");
  table.column("tensor_wire_bytes", "sent_(tensor)");
  table.column("exposed_comm_s", "exposed");
  table.column("step_time_s", "step time");
  table.column("samples_per_s", "samples/s");
  table.column("fits", "fits");
  for (const forecast::Variant& variant : variants) {
    const cost::StepCost& cost = *variant.candidate.forecast.cost;
    table.row({report::text_cell(space::to_string(variant.value)),
               bytes_cell(static_cast<std::int64_t>(cost.data_wire_bytes)),
               bytes_cell(static_cast<std::int64_t>(cost.tensor_wire_bytes)), seconds_cell(cost.exposed_comm_s),
               seconds_cell(cost.step_time_s), rate_cell(variant.candidate.forecast.samples_per_s),
               fits_cell(variant.candidate.forecast.memory)});
  }
  return std::move(table).table();
}

}  // namespace krigtune::cli
