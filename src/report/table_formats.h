#pragma once
#include <string>

#include "krigtune/report/table.h"

namespace krigtune {

// One format a file; table.cpp is their registry.
std::string render_text(const Table& table);
std::string render_markdown(const Table& table);
std::string render_csv(const Table& table);
std::string render_json(const Table& table);

}  // namespace krigtune
