import AssentCore
import AssentEngine

/// A step of a journey as a form.
struct SignInContent {
    private let page: AuthenticatePage
    private let callbacks: [PageCallback]
    private let isApproval: Bool

    /// A step; `isApproval` says that the journey is a transaction's.
    init(_ page: AuthenticatePage, isApproval: Bool = false) {
        self.page = page
        self.isApproval = isApproval
        callbacks = (page.content["callbacks"]?.array ?? []).enumerated().map {
            PageCallback($0.element, at: $0.offset)
        }
    }

    /// What the step asks, in short: the same step asked again has the same.
    var digest: String {
        Base64URL.encode(SHA2.sha256(JSONValue.object(page.content).serializedBytes()).prefix(12))
    }

    /// What the page is called.
    var title: String {
        if let header = page.content["header"]?.string { return header }
        if transaction != nil { return "Approve this request?" }
        return isApproval ? "Confirm that it is you" : "Sign in"
    }

    /// The form, or `nil` when the step asks what a page cannot show.
    ///
    /// - Parameters:
    ///   - action: where it is sent.
    ///   - client: who waits for the sign-in.
    ///   - notice: what went wrong before.
    ///   - canCancel: whether the user may go back without answering.
    /// - Returns: the form.
    func html(action: String, client: String?, notice: SignInNotice?, canCancel: Bool = false) -> HTML? {
        guard callbacks.allSatisfy(\.isSupported) else { return nil }
        let types = callbacks.map(\.type).joined(separator: " ")
        let alert: HTML? = notice.map { #"<p class="alert" id="alert" role="alert">\#($0.text)</p>"# }
        let context: HTML? = client.map { "<p class=\"lead\">to continue to <strong>\($0)</strong></p>" }
        let description: HTML? = page.content["description"]?.string.map { "<p class=\"lead\">\($0)</p>" }
        return """
            <h1>\(title)</h1>
            \(transaction == nil ? context : nil)\(description)\(alert)\(transaction?.html)
            <form method="post" action="\(exact: action)">
            <input type="hidden" name="authId" value="\(exact: page.authID.reveal())">
            <input type="hidden" name="types" value="\(exact: types)">
            <input type="hidden" name="shown" value="\(exact: digest)">
            \(fields(describedBy: notice == nil ? nil : "alert"))
            \(buttons(canCancel: canCancel))
            </form>
            """
    }

    /// What is to be approved, when the step is about a transaction.
    private var transaction: TransactionSummary? {
        callbacks.lazy.compactMap { $0.outputs["data"].flatMap(TransactionSummary.init) }.first
    }

    private func fields(describedBy: String?) -> [HTML] {
        let firstField = callbacks.firstIndex(where: \.isField)
        let asksName = callbacks.contains { $0.type == "NameCallback" }
        let summary = transaction
        return callbacks.enumerated().compactMap { index, callback in
            // The text of an approval says what the lines above say.
            if summary?.lines.isEmpty == false, callback.type == "TextOutputCallback" { return nil }
            return callback.html(
                isFirst: index == firstField, asksName: asksName,
                describedBy: index == firstField ? describedBy : nil)
        }
    }

    private func buttons(canCancel: Bool) -> HTML {
        let cancel: HTML? = canCancel ? #"<button name="cancel" value="1" formnovalidate>Cancel</button>"# : nil
        guard let confirmation = callbacks.first(where: { $0.type == "ConfirmationCallback" }) else {
            return #"<p class="actions"><button class="primary">Continue</button>\#(cancel)</p>"#
        }
        let options = confirmation.outputs["options"]?.strings ?? []
        let preset = confirmation.outputs["defaultOption"]?.integer ?? 0
        // Return in a field presses a form's first button, which must be the one that the journey means by default.
        let first: HTML? =
            preset == 0
            ? nil
            : #"<button name="\#(exact: confirmation.inputName)" value="\#(Int(preset))" hidden tabindex="-1"></button>"#
        let shown: [HTML] = options.enumerated().map { index, text in
            #"<button name="\#(exact: confirmation.inputName)" value="\#(index)"\#(index == 0 ? #" class="primary""# : "" as HTML)>\#(text)</button>"#
        }
        return "\(first)<p class=\"actions\">\(shown)\(cancel)</p>"
    }
}

/// What an approval is for, from the server's own record.
struct TransactionSummary {
    let lines: [DisplayField]
    private let request: String?

    init?(_ data: JSONValue) {
        guard data["_type"]?.string == "AssentTransaction" else { return nil }
        lines = (data["display"]?.array ?? []).map {
            DisplayField(label: $0["label"]?.string ?? "", value: $0["value"]?.string ?? "")
        }
        request = data["resource"]?.string.map {
            [data["method"]?.string, $0].compactMap(\.self).joined(separator: " ")
        }
    }

    var html: HTML {
        let rows: [HTML] = lines.map { "<div><dt>\($0.label)</dt><dd>\($0.value)</dd></div>" }
        let list: HTML? = rows.isEmpty ? nil : "<dl class=\"summary\">\(rows)</dl>"
        let source: HTML? = request.map { "<p class=\"source\">\($0)</p>" }
        return "\(list)\(source)"
    }
}
