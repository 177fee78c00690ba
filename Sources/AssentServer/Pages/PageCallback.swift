import AssentEngine

/// One callback of a page, as a part of a form.
struct PageCallback {
    let prompt: CallbackPrompt

    /// The name of its field, for example `IDToken1`.
    let inputName: String

    init(_ prompt: CallbackPrompt, place: Int) {
        self.prompt = prompt
        inputName = InputName(place: place).text
    }

    /// What stands in its field before the user has typed.
    var preset = ""

    /// Whether the user fills something in.
    var isField: Bool {
        switch prompt {
        case .name, .password, .textInput, .choice: true
        case .textOutput, .confirmation, .hiddenValue, .approval, .custom: false
        }
    }

    /// Whether a page can show it. What asks nothing need not be shown.
    var isSupported: Bool {
        if case .custom(let callback) = prompt { callback.inputs.isEmpty } else { true }
    }

    /// Its part of the form; `nil` when there is nothing to see.
    ///
    /// - Parameters:
    ///   - isFirst: whether the cursor begins here.
    ///   - asksName: whether the page asks who the user is; a text that is asked for without that is most likely a
    ///     code.
    ///   - describedBy: the element that says what was wrong.
    ///   - language: the reader's.
    /// - Returns: the part.
    func html(isFirst: Bool, asksName: Bool, describedBy: String?, _ language: PageLanguage) -> HTML? {
        let focus: HTML = isFirst ? " autofocus" : ""
        let described: HTML? = describedBy.map { #" aria-describedby="\#(exact: $0)" aria-invalid="true""# }
        switch prompt {
        case .name(let label):
            return field(
                label.isEmpty ? language[.userName] : language[label],
                #"type="text" value="\#(exact: preset)" autocomplete="username" autocapitalize="none" spellcheck="false" required\#(focus)\#(described)"#
            )
        case .password(let label):
            return field(
                label.isEmpty ? language[.password] : language[label],
                #"type="password" autocomplete="current-password" required\#(focus)\#(described)"#)
        case .textInput(let label, let preset):
            // A telephone then shows digits; anyone who needs a letter can still choose them.
            let hint: HTML = asksName ? #"autocomplete="off""# : #"autocomplete="one-time-code" inputmode="numeric""#
            return field(
                label.isEmpty ? language[.answer] : language[label],
                #"type="text" value="\#(exact: preset)" \#(hint) autocapitalize="none" spellcheck="false" required\#(focus)\#(described)"#
            )
        case .choice(let label, let choices, let preset):
            return choice(
                label.isEmpty ? language[.choose] : language[label], choices.map { language[$0] }, preset, focus,
                described)
        case .textOutput(let message, let kind): return text(language[message], kind)
        case .hiddenValue(let id, _):
            return #"<input type="hidden" name="\#(exact: inputName)" value="\#(exact: id)">"#
        case .confirmation, .approval, .custom: return nil
        }
    }

    private func field(_ label: String, _ attributes: HTML) -> HTML {
        """
        <p class="field"><label for="\(exact: inputName)">\(label)</label>
        <input id="\(exact: inputName)" name="\(exact: inputName)" maxlength="4096" \(attributes)></p>
        """
    }

    private func choice(
        _ label: String, _ choices: [String], _ preset: Int, _ focus: HTML, _ described: HTML?
    ) -> HTML {
        let choices: [HTML] = choices.enumerated().map { index, text in
            """
            <label><input type="radio" name="\(exact: inputName)" value="\(index)" required\
            \(index == preset ? " checked" : "" as HTML)\(index == preset ? focus : "")> <span>\(text)</span></label>
            """
        }
        return #"<fieldset role="radiogroup"\#(described)><legend>\#(label)</legend>\#(choices)</fieldset>"#
    }

    /// A message. Scripts are for other clients and are neither run nor shown.
    private func text(_ message: String, _ kind: CallbackPrompt.MessageKind) -> HTML? {
        guard kind != .script, !message.isEmpty else { return nil }
        let lines: [HTML] = message.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .map { $0.offset == 0 ? "\($0.element)" : "<br>\($0.element)" }
        return switch kind {
        case .error: "<p class=\"alert\" role=\"alert\">\(lines)</p>"
        case .warning: "<p class=\"warning\">\(lines)</p>"
        case .information, .script: "<p class=\"message\">\(lines)</p>"
        }
    }
}
