import AssentCore
import AssentEngine
import Foundation

/// A page of a journey as a form.
struct SignInContent {
    private let page: AuthenticatePage
    private let callbacks: [PageCallback]
    private let isApproval: Bool
    private let asker: String?
    private let language: PageLanguage

    /// A page of a journey.
    ///
    /// - Parameters:
    ///   - page: the page.
    ///   - isApproval: whether the journey is a transaction's.
    ///   - asker: the app that it was begun for, as users know it.
    ///   - loginHint: the name that the user may want to sign in with.
    ///   - language: the reader's.
    init(
        _ page: AuthenticatePage, isApproval: Bool = false, asker: String? = nil, loginHint: String? = nil,
        language: PageLanguage = .english
    ) {
        self.page = page
        self.language = language
        self.isApproval = isApproval
        self.asker = asker
        callbacks = page.content.prompts.enumerated().map { index, prompt in
            var callback = PageCallback(prompt, place: index + 1)
            if prompt.kind == .name { callback.preset = page.typedName ?? loginHint ?? "" }
            return callback
        }
    }

    /// Whether the user fills something in.
    var hasFields: Bool { callbacks.contains(where: \.isField) }

    /// What the page is called.
    var title: String {
        if let header = page.content.presentation.header { return language[header] }
        if transaction != nil { return language[.approveThis] }
        return language[isApproval ? .confirmIdentity : .signIn]
    }

    /// The form, or `nil` when the page asks what a form cannot.
    ///
    /// - Parameters:
    ///   - action: where it is sent.
    ///   - client: who waits for the sign-in.
    ///   - notice: what went wrong before.
    ///   - canCancel: whether the user may go back without answering.
    /// - Returns: the form.
    func html(action: String, client: String?, notice: SignInNotice?, canCancel: Bool = false) -> HTML? {
        guard callbacks.allSatisfy(\.isSupported) else { return nil }
        let types = callbacks.map(\.prompt.kind.rawValue).joined(separator: " ")
        let alert: HTML? = notice.map { #"<p class="alert" id="alert" role="alert">\#(language[$0.text])</p>"# }
        let context: HTML? = client.map {
            "<p class=\"lead\">\(language.html(.continueTo, ["app": "<strong>\($0)</strong>"]))</p>"
        }
        let description: HTML? = page.content.presentation.description.map {
            "<p class=\"lead\">\(language[$0])</p>"
        }
        return """
            <h1>\(title)</h1>
            \(transaction == nil ? context : nil)\(description)\(alert)\(summary?.html(language))
            <form method="post" action="\(exact: action)">
            <input type="hidden" name="authId" value="\(exact: page.authID.reveal())">
            <input type="hidden" name="types" value="\(exact: types)">
            \(fields(describedBy: notice?.isAboutFields == true ? "alert" : nil))
            \(buttons(canCancel: canCancel))
            </form>
            """
    }

    /// What is to be approved, when the page is about a transaction.
    private var transaction: TransactionSummary? {
        for case .approval(let approval) in page.content.prompts {
            return TransactionSummary(approval: approval, username: page.approving?.username, asker: asker)
        }
        return nil
    }

    /// The same on the pages that come before and after: who types a code must see what for.
    private var summary: TransactionSummary? {
        transaction
            ?? page.approving.map { TransactionSummary(approval: $0.approval, username: $0.username, asker: asker) }
    }

    private func fields(describedBy: String?) -> [HTML] {
        // Where the name stands already, the cursor begins behind it.
        let firstField =
            callbacks.firstIndex { $0.isField && $0.preset.isEmpty } ?? callbacks.firstIndex(where: \.isField)
        let asksName = callbacks.contains { $0.prompt.kind == .name }
        let hasSummary = transaction?.approval.lines.isEmpty == false
        return callbacks.enumerated().compactMap { index, callback in
            // The text of an approval says what the lines above say.
            if hasSummary, callback.prompt.kind == .textOutput { return nil }
            return callback.html(
                isFirst: index == firstField, asksName: asksName,
                describedBy: callback.isField ? describedBy : nil, language)
        }
    }

    private func buttons(canCancel: Bool) -> HTML {
        let cancel: HTML? =
            canCancel ? #"<button name="cancel" value="1" formnovalidate>\#(language[.cancel])</button>"# : nil
        for callback in callbacks {
            guard case .confirmation(let options, let preset) = callback.prompt else { continue }
            return buttons(options.map { language[$0] }, preset: preset, name: callback.inputName, cancel: cancel)
        }
        return #"<p class="actions"><button class="primary">\#(language[.continueButton])</button>\#(cancel)</p>"#
    }

    private func buttons(_ options: [String], preset: Int, name: String, cancel: HTML?) -> HTML {
        // Return in a field presses a form's first button, which must be the one that the journey means by default.
        let first: HTML? =
            preset == 0
            ? nil
            : #"<button name="\#(exact: name)" value="\#(preset)" hidden tabindex="-1"></button>"#
        let shown: [HTML] = options.enumerated().map { index, text in
            #"<button name="\#(exact: name)" value="\#(index)"\#(index == 0 ? #" class="primary""# : "" as HTML)>\#(text)</button>"#
        }
        return "\(first)<p class=\"actions\">\(shown)\(cancel)</p>"
    }
}

/// What an approval is for, from the server's own record.
struct TransactionSummary {
    let approval: PendingApproval

    /// Whose approval it is, where that is known.
    let username: String?

    /// The app that asks, as users know it, where that is known.
    let asker: String?

    func html(_ language: PageLanguage) -> HTML {
        let rows: [HTML] = approval.lines.map {
            "<div><dt>\(language[$0.label])</dt><dd><bdi>\($0.value)</bdi></dd></div>"
        }
        let list: HTML? = rows.isEmpty ? nil : "<dl class=\"summary\">\(rows)</dl>"
        let method: HTML? = approval.method.map { "\($0) " }
        let account: HTML? = username.map {
            language.html(.terms, ["user": "<strong>\($0)</strong>", "end": "\(end(language))"])
        }
        let asked: HTML? = asker.map { "\(language.html(.askedBy, ["app": "<strong>\($0)</strong>"])) " }
        return
            "\(list)<p class=\"source\">\(method)\(HTML(breaking: approval.resource))</p><p class=\"terms\">\(asked)\(account)</p>"
    }

    /// When it is too late. A page without scripts does not know the user's own time.
    private func end(_ language: PageLanguage) -> String {
        let date = Date(timeIntervalSince1970: TimeInterval(approval.expiresAt))
        return language.text(date, withTime: true)
    }
}
