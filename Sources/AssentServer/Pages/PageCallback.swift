import AssentCore

/// One callback of a step, as a part of a form.
struct PageCallback {
    let type: String
    let outputs: [String: JSONValue]

    /// The name of its field, for example `IDToken1`.
    let inputName: String

    private let initial: JSONValue?
    private let inputCount: Int

    init(_ callback: JSONValue, at index: Int) {
        type = callback["type"]?.string ?? ""
        outputs = Dictionary(
            (callback["output"]?.array ?? []).compactMap { output in
                output["name"]?.string.flatMap { name in output["value"].map { (name, $0) } }
            }, uniquingKeysWith: { first, _ in first })
        inputName = "IDToken\(index + 1)"
        let inputs = callback["input"]?.array ?? []
        initial = inputs.first?["value"]
        inputCount = inputs.count
    }

    /// Whether the user fills something in.
    var isField: Bool { ["NameCallback", "PasswordCallback", "TextInputCallback", "ChoiceCallback"].contains(type) }

    /// Whether a page can show it. What has nothing to answer need not be shown.
    var isSupported: Bool {
        inputCount == 0 || isField || type == "ConfirmationCallback" || type == "HiddenValueCallback"
    }

    private var prompt: String { outputs["prompt"]?.string ?? "" }

    /// Its part of the form; `nil` when there is nothing to see.
    ///
    /// - Parameters:
    ///   - isFirst: whether the cursor begins here.
    ///   - asksName: whether the page asks who the user is; a text that is asked for without that is most likely a code.
    ///   - describedBy: the element that says what was wrong.
    /// - Returns: the part.
    func html(isFirst: Bool, asksName: Bool, describedBy: String?) -> HTML? {
        let focus: HTML = isFirst ? " autofocus" : ""
        let described: HTML? = describedBy.map { #" aria-describedby="\#(exact: $0)" aria-invalid="true""# }
        switch type {
        case "NameCallback":
            return field(
                "User name",
                #"type="text" autocomplete="username" autocapitalize="none" spellcheck="false" required\#(focus)\#(described)"#
            )
        case "PasswordCallback":
            return field(
                "Password", #"type="password" autocomplete="current-password" required\#(focus)\#(described)"#)
        case "TextInputCallback":
            let hint: HTML = asksName ? "off" : "one-time-code"
            let preset = outputs["defaultText"]?.string ?? ""
            return field(
                "Answer",
                #"type="text" value="\#(exact: preset)" autocomplete="\#(hint)" autocapitalize="none" spellcheck="false" required\#(focus)\#(described)"#
            )
        case "ChoiceCallback": return choice(focus)
        case "TextOutputCallback", "SuspendedTextOutputCallback": return text
        case "HiddenValueCallback":
            return #"<input type="hidden" name="\#(exact: inputName)" value="\#(exact: initial?.string ?? "")">"#
        default: return nil
        }
    }

    private func field(_ fallback: String, _ attributes: HTML) -> HTML {
        """
        <p class="field"><label for="\(exact: inputName)">\(prompt.isEmpty ? fallback : prompt)</label>
        <input id="\(exact: inputName)" name="\(exact: inputName)" maxlength="4096" \(attributes)></p>
        """
    }

    private func choice(_ focus: HTML) -> HTML {
        let preset = Int(outputs["defaultChoice"]?.integer ?? 0)
        let choices: [HTML] = (outputs["choices"]?.strings ?? []).enumerated().map { index, text in
            """
            <label><input type="radio" name="\(exact: inputName)" value="\(index)" required\
            \(index == preset ? " checked" : "" as HTML)\(index == preset ? focus : "")> <span>\(text)</span></label>
            """
        }
        return "<fieldset><legend>\(prompt.isEmpty ? "Choose" : prompt)</legend>\(choices)</fieldset>"
    }

    /// A message. Scripts (`messageType` 4) are for other clients and are neither run nor shown.
    private var text: HTML? {
        let kind = outputs["messageType"]?.string ?? outputs["messageType"]?.integer.map { String($0) } ?? "0"
        guard kind != "4", let message = outputs["message"]?.string, !message.isEmpty else { return nil }
        let lines: [HTML] = message.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .map { $0.offset == 0 ? "\($0.element)" : "<br>\($0.element)" }
        switch kind {
        case "2": return "<p class=\"alert\" role=\"alert\">\(lines)</p>"
        case "1": return "<p class=\"warning\">\(lines)</p>"
        default: return "<p class=\"message\">\(lines)</p>"
        }
    }
}
