import AssentCore

/// A sequence diagram of what a narration told, as one SVG without script that fits light and dark screens.
package struct SequenceDrawing: Sendable {
    /// What is drawn, in order.
    let events: [Narration.Event]

    /// Who takes part in it.
    private let lanes: [Narration.Party]

    private static let laneWidth = 230
    private static let margin = 130
    /// How many characters fit beside a lane.
    private static let textWidth = 32

    package init(events: [Narration.Event]) {
        self.events = events
        let present = Set(events.flatMap(\.parties))
        lanes = Narration.Party.allCases.filter(present.contains)
    }

    /// How wide the drawing is, in pixels.
    var width: Int { Self.margin * 2 + Self.laneWidth * max(0, lanes.count - 1) }

    /// The colours of the drawing and of the page around it.
    ///
    /// They are written as rules of classes, not as variables: more programs than browsers show an SVG.
    static let style = """
        .panel { fill:#ffffff; stroke:#d5dae1 } .lane { stroke:#b9c1cb; stroke-dasharray:3 4 }
        .head { fill:#eef2f7; stroke:#b9c1cb } .band { fill:#eef2f7 } .arrow { stroke:#1b1f24; stroke-width:1.4 }
        .tip { fill:#1b1f24 } .arrow.refused { stroke:#b35900 } .tip.refused { fill:#b35900 }
        text { font:13px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; fill:#1b1f24; paint-order:stroke; \
        stroke:#ffffff; stroke-width:5px; stroke-linejoin:round }
        .name { font-weight:600; text-anchor:middle; stroke:none } .step { font-weight:700; font-size:14px; stroke:none }
        .label, .note { text-anchor:middle } .note { stroke:none } .box { fill:#e7f1fb; stroke:#a9cdef } .label.refused { fill:#b35900 }
        .note { fill:#0b5cad } .clock { fill:#68707a; font-style:italic } .check { fill:#1a7f37 }
        .failed { fill:#cf222e; font-weight:700 }
        @media (prefers-color-scheme: dark) {
        .panel { fill:#14171a; stroke:#3b434c } .lane { stroke:#4a535d } .head, .band { fill:#232930; stroke:#4a535d }
        .band { stroke:none } .arrow { stroke:#e6e9ed } .tip { fill:#e6e9ed } .arrow.refused { stroke:#e3a04f }
        .tip.refused { fill:#e3a04f } text { fill:#e6e9ed; stroke:#14171a } .name, .step { stroke:none }
        .label.refused { fill:#e3a04f } .note { fill:#79b8ff; stroke:none } .box { fill:#12283d; stroke:#2b5580 } .clock { fill:#9aa4af } .check { fill:#4ac26b }
        .failed { fill:#ff7b72 } }
        """

    /// The SVG; `label` says to people who cannot see it what it shows. A file of its own has to name its namespace, a
    /// part of a page need not.
    package func svg(label: String, isFile: Bool) -> String {
        let (body, height) = draw()
        return """
            <svg\(isFile ? #" xmlns="http://www.w3.org/2000/svg""# : "") width="\(width)" height="\(height)" \
            viewBox="0 0 \(width) \(height)" role="img" aria-label="\(DisplayText.escapedForHTML(label))">
            <style>\(Self.style)</style>
            <defs>\(Self.tip("tip"))\(Self.tip("tip-refused"))</defs>
            <rect class="panel" x="0.5" y="0.5" width="\(width - 1)" height="\(height - 1)" rx="10"/>
            \(body)
            </svg>

            """
    }

    private static func tip(_ id: String) -> String {
        let kind = id == "tip" ? "tip" : "tip refused"
        return
            #"<marker id="\#(id)" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">"#
            + #"<path class="\#(kind)" d="M0,0L8,4L0,8z"/></marker>"#
    }

    private func x(_ party: Narration.Party) -> Int {
        Self.margin + Self.laneWidth * (lanes.firstIndex(of: party) ?? 0)
    }

    private func draw() -> (body: String, height: Int) {
        var y = 60
        var parts: [String] = []
        for event in events { y = draw(event, at: y, into: &parts) }
        let height = y + 68
        let heads = lanes.map { party in
            let x = self.x(party)
            // Who reads the end of a long picture does not see its beginning.
            return #"<line class="lane" x1="\#(x)" y1="48" x2="\#(x)" y2="\#(height - 48)"/>"#
                + [14, height - 48].map { head(party, x: x, y: $0) }.joined()
        }
        return (heads.joined(separator: "\n") + "\n" + parts.joined(separator: "\n"), height)
    }

    private func head(_ party: Narration.Party, x: Int, y: Int) -> String {
        #"<rect class="head" x="\#(x - 75)" y="\#(y)" width="150" height="34" rx="6"/>"#
            + Self.text(party.rawValue, x: x, y: y + 22, kind: "name")
    }

    /// Draws one event below `y`, and answers where the next begins.
    private func draw(_ event: Narration.Event, at y: Int, into parts: inout [String]) -> Int {
        switch event {
        case .step(let number, let title):
            let y = y + 16
            parts.append(#"<rect class="band" x="12" y="\#(y)" width="\#(width - 24)" height="28" rx="5"/>"#)
            parts.append(Self.text("\(number). \(title)", x: 24, y: y + 19, kind: "step"))
            return y + 42
        case .message(let from, let to, let label, let refused):
            let (start, end) = (x(from), x(to))
            let kind = refused ? " refused" : ""
            let lines = Self.wrapped(label, width: Self.textWidth * max(1, abs(end - start) / Self.laneWidth))
            let y = Self.draw(lines, x: (start + end) / 2, y: y, kind: "label" + kind, into: &parts) + 4
            let tip = refused ? "tip-refused" : "tip"
            parts.append(
                #"<line class="arrow\#(kind)" x1="\#(start)" y1="\#(y)" x2="\#(start < end ? end - 2 : end + 2)" "#
                    + #"y2="\#(y)" marker-end="url(#\#(tip))"/>"#)
            return y + 12
        case .note(let party, let note):
            let lines = Self.wrapped(note, width: Self.textWidth)
            parts.append(
                #"<rect class="box" x="\#(x(party) - 112)" y="\#(y + 2)" width="224" "#
                    + #"height="\#(lines.count * 16 + 8)" rx="6"/>"#)
            return Self.draw(lines, x: x(party), y: y + 6, kind: "note", into: &parts) + 10
        case .clock(let note):
            parts.append(Self.text("Clock: " + note, x: 24, y: y + 12, kind: "clock"))
            return y + 22
        case .check(let check, let passed):
            parts.append(
                Self.text((passed ? "✓ " : "✗ ") + check, x: 24, y: y + 12, kind: passed ? "check" : "failed"))
            return y + 22
        }
    }

    private static func draw(_ lines: [String], x: Int, y: Int, kind: String, into parts: inout [String]) -> Int {
        for (index, line) in lines.enumerated() {
            parts.append(text(line, x: x, y: y + 12 + 16 * index, kind: kind))
        }
        return y + 16 * lines.count
    }

    private static func text(_ text: String, x: Int, y: Int, kind: String) -> String {
        #"<text class="\#(kind)" x="\#(x)" y="\#(y)">\#(DisplayText.escapedForHTML(text))</text>"#
    }

    /// Breaks a text at blanks outside of parentheses, and before the `?` and the `&` of a URL.
    private static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        var piece = ""
        var isAside = false
        func take() {
            if !line.isEmpty, line.count + piece.count > width {
                lines.append(line)
                line = ""
            }
            line += line.isEmpty ? String(piece.drop { $0 == " " }) : piece
            piece = ""
        }
        for character in text {
            if character == "(" { isAside = true }
            if character == ")" { isAside = false }
            if character == "?" || character == "&" || character == " " && !isAside { take() }
            piece.append(character)
        }
        take()
        return lines + [line]
    }
}
