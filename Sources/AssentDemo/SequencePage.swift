import AssentCore

/// A page with the sequence diagram of a run: one SVG, no script, nothing from elsewhere.
package struct SequencePage: Sendable {
    private let title: String
    private let subtitle: String
    private let events: [Narration.Event]

    /// A page with a title, a line below it, and the events that are drawn.
    package init(title: String, subtitle: String, events: [Narration.Event]) {
        self.title = title
        self.subtitle = subtitle
        self.events = events
    }

    /// The page.
    package var html: String {
        let drawing = SequenceDrawing(events: events)
        return """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
            <title>\(DisplayText.escapedForHTML(title))</title><style>
            body { margin:2rem auto; max-width:\(drawing.width + 40)px; padding:0 1rem; \
            font:15px/1.45 system-ui,sans-serif; color:#1b1f24; background:#ffffff }
            h1 { font-size:1.5rem; margin:0 0 .3rem } p { color:#68707a; margin:0 0 1.2rem } .scroll { overflow-x:auto }
            svg { display:block; width:100%; min-width:\(drawing.width * 7 / 10)px; height:auto }
            @media (prefers-color-scheme: dark) { body { color:#e6e9ed; background:#14171a } p { color:#9aa4af } }
            </style></head><body><main><h1>\(DisplayText.escapedForHTML(title))</h1>
            <p>\(DisplayText.escapedForHTML(subtitle))</p><div class="scroll" tabindex="0" role="region" aria-label="Sequence diagram, which can be scrolled">
            \(drawing.svg(label: "Sequence diagram", isFile: false))</div></main></body></html>

            """
    }
}
