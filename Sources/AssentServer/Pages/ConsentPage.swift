import AssentCore
import AssentEngine
import Foundation

/// The question whether a client may have what it wants: what, for whom, until when.
struct ConsentPage {
    let demand: ConsentDemand

    /// What scopes mean to people, from the operator's file.
    let scopeTexts: [String: String]

    let language: PageLanguage

    /// What the standard's scopes mean, where the file says nothing (OpenID Connect Core §5.4, §11).
    private static let standardTexts: [String: PageText] = [
        "openid": .scopeOpenID, "profile": .scopeProfile, "email": .scopeEmail, "phone": .scopePhone,
        "address": .scopeAddress, "offline_access": .scopeOffline,
    ]

    /// The client as users know it.
    private var name: String { demand.client.name ?? demand.client.id }

    /// What the window is called.
    var title: String { language.text(.allowTitle, ["app": name]) }

    /// The page's content, whose form is sent to `action`.
    func html(action: String) -> HTML {
        let hidden: [HTML] = demand.parameters.form.items.map {
            #"<input type="hidden" name="\#(exact: $0.name)" value="\#(exact: $0.value)">"#
        }
        let wishes: [HTML] = demand.scopes.map { "<dd>\(text(of: $0))</dd>" }
        let until = language.text(Date(timeIntervalSince1970: TimeInterval(demand.expiresAt)), withTime: false)
        let lead = language.html(
            .asksForAccess, ["app": "<strong>\(name)</strong>", "user": "<strong>\(demand.user.username)</strong>"])
        return """
            <h1>\(title)</h1>
            <p class="lead">\(lead)</p>
            <dl class="summary">
            <div><dt>\(language[.itMay])</dt>\(wishes)</div>
            <div><dt>\(language[.until])</dt><dd>\(language.html(.untilDate, ["end": "\(until)"]))</dd></div>
            <div><dt>\(language[.answerGoesTo])</dt><dd>\(HTML(breaking: place(demand.redirectURI)))</dd></div>
            </dl>
            <form method="post" action="\(exact: action)">
            \(hidden)
            <p class="actions"><button name="decision" value="allow" class="primary">\(language[.allow])</button>
            <button name="decision" value="deny">\(language[.deny])</button></p>
            </form>
            """
    }

    private func text(of scope: String) -> String {
        scopeTexts[scope].map { language[$0] } ?? Self.standardTexts[scope].map { language[$0] } ?? scope
    }

    /// The origin of a redirect URI, or an app's own scheme.
    private func place(_ uri: String) -> String {
        (try? Origin(uri))?.description ?? language.text(.appOnDevice, ["scheme": String(uri.prefix { $0 != ":" })])
    }
}
