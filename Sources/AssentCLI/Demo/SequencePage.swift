import AssentCore

/// A self-contained HTML page with the sequence diagram of a run: one SVG, no script, nothing from elsewhere.
struct SequencePage: Sendable {
    let title: String
    let subtitle: String
    let events: [Narration.Event]

    private static let laneWidth = 230
    private static let margin = 130
    private static let textWidth = 44

    /// The page.
    var html: String {
        let drawing = draw()
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>\(DisplayText.escapedForHTML(title))</title><style>
            :root { --ink:#1b1f24; --dim:#68707a; --line:#c8ced6; --back:#ffffff; --panel:#f3f5f8; --good:#1a7f37; --bad:#b35900; --fail:#cf222e; --note:#0b5cad }
            @media (prefers-color-scheme: dark) { :root { --ink:#e6e9ed; --dim:#9aa4af; --line:#3b434c; --back:#14171a; --panel:#1e2328; --good:#4ac26b; --bad:#e3a04f; --fail:#ff7b72; --note:#79b8ff } }
            body { margin:2rem auto; max-width:\(Self.width + 40)px; padding:0 1rem; font:15px/1.45 system-ui,sans-serif; color:var(--ink); background:var(--back) }
            h1 { font-size:1.5rem; margin:0 0 .3rem } p { color:var(--dim); margin:0 0 1.2rem }
            .scroll { overflow-x:auto } svg { display:block; font:13px system-ui,sans-serif }
            .lane { stroke:var(--line); stroke-dasharray:3 4 } .head { fill:var(--panel); stroke:var(--line) } .name { font-weight:600; text-anchor:middle; fill:var(--ink) }
            .step { font-weight:700; font-size:14px; fill:var(--ink) } .band { fill:var(--panel) }
            .arrow { stroke:var(--ink); stroke-width:1.4 } .refused { stroke:var(--bad) } .label { text-anchor:middle; fill:var(--ink) } .label.refused { fill:var(--bad); stroke:none }
            .note { fill:var(--note); text-anchor:middle } .note.left { text-anchor:start } .clock { fill:var(--dim); font-style:italic } .check { fill:var(--good) } .failed { fill:var(--fail); font-weight:700 }
            </style></head><body><h1>\(DisplayText.escapedForHTML(title))</h1><p>\(DisplayText.escapedForHTML(subtitle))</p><div class="scroll">
            <svg width="\(Self.width)" height="\(drawing.height)" viewBox="0 0 \(Self.width) \(drawing.height)" role="img" aria-label="Sequence diagram">
            <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0L8,4L0,8z" fill="var(--ink)"/></marker>
            <marker id="tip-refused" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0,0L8,4L0,8z" fill="var(--bad)"/></marker></defs>
            \(drawing.svg)
            </svg></div></body></html>

            """
    }

    private static var width: Int { margin * 2 + laneWidth * (Narration.Party.allCases.count - 1) }

    private static func x(_ party: Narration.Party) -> Int {
        margin + laneWidth * (Narration.Party.allCases.firstIndex(of: party) ?? 0)
    }

    private func draw() -> (svg: String, height: Int) {
        var y = 70
        var parts: [String] = []
        for event in events {
            switch event {
            case .step(let number, let title):
                y += 16
                parts.append(#"<rect class="band" x="8" y="\#(y)" width="\#(Self.width - 16)" height="28" rx="5"/>"#)
                parts.append(text("\(number). \(title)", x: 20, y: y + 19, kind: "step"))
                y += 42
            case .message(let from, let to, let label, let refused):
                let (start, end) = (Self.x(from), Self.x(to))
                let kind = refused ? " refused" : ""
                let lines = Self.wrapped(label)
                for line in lines {
                    parts.append(text(line, x: (start + end) / 2, y: y + 12, kind: "label" + kind))
                    y += 16
                }
                y += 4
                parts.append(
                    #"<line class="arrow\#(kind)" x1="\#(start)" y1="\#(y)" x2="\#(start < end ? end - 2 : end + 2)" y2="\#(y)" marker-end="url(#tip\#(refused ? "-refused" : ""))"/>"#
                )
                y += 12
            case .note(let party, let note):
                for line in Self.wrapped(note) {
                    // The first lane is at the edge: what is centred on it would begin outside.
                    let isFirst = party == Narration.Party.allCases.first
                    parts.append(
                        text(line, x: isFirst ? 20 : Self.x(party), y: y + 12, kind: isFirst ? "note left" : "note"))
                    y += 16
                }
                y += 6
            case .clock(let note):
                parts.append(text("Clock: " + note, x: 20, y: y + 12, kind: "clock"))
                y += 22
            case .check(let check, let passed):
                parts.append(text((passed ? "✓ " : "✗ ") + check, x: 20, y: y + 12, kind: passed ? "check" : "failed"))
                y += 20
            }
        }
        let height = y + 24
        let lanes = Narration.Party.allCases.map { party in
            let x = Self.x(party)
            return #"<line class="lane" x1="\#(x)" y1="44" x2="\#(x)" y2="\#(height - 8)"/>"#
                + #"<rect class="head" x="\#(x - 75)" y="10" width="150" height="34" rx="6"/>"#
                + text(party.rawValue, x: x, y: 32, kind: "name")
        }
        return (lanes.joined(separator: "\n") + "\n" + parts.joined(separator: "\n"), height)
    }

    private func text(_ text: String, x: Int, y: Int, kind: String) -> String {
        #"<text class="\#(kind)" x="\#(x)" y="\#(y)">\#(DisplayText.escapedForHTML(text))</text>"#
    }

    private static func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, line.count + word.count >= textWidth {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return line.isEmpty ? lines : lines + [line]
    }
}
