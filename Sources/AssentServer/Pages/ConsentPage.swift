import AssentCore
import AssentEngine
import Foundation

/// The question whether a client may have what it wants: what, for whom, until when.
struct ConsentPage {
    let demand: ConsentDemand

    /// What scopes mean to people, from the operator's file.
    let scopeTexts: [String: String]

    /// What the standard's scopes mean, where the file says nothing (OpenID Connect Core §5.4, §11).
    private static let standardTexts = [
        "openid": "Know that it is you", "profile": "See your name and profile", "email": "See your e-mail address",
        "phone": "See your phone number", "address": "See your address",
        "offline_access": "Keep its access after you have signed out",
    ]

    /// The client as users know it.
    private var name: String { demand.client.name ?? demand.client.id }

    /// What the window is called.
    var title: String { "Allow \(name)?" }

    /// The page's content, whose form is sent to `action`.
    func html(action: String) -> HTML {
        let hidden: [HTML] = demand.parameters.form.items.map {
            #"<input type="hidden" name="\#(exact: $0.name)" value="\#(exact: $0.value)">"#
        }
        let wishes: [HTML] = demand.scopes.map { "<dd>\(scopeTexts[$0] ?? Self.standardTexts[$0] ?? $0)</dd>" }
        let until = Date(timeIntervalSince1970: TimeInterval(demand.expiresAt))
            .formatted(.iso8601.year().month().day())
        return """
            <h1>\(title)</h1>
            <p class="lead"><strong>\(name)</strong> asks for access to your account
            <strong>\(demand.user.username)</strong>.</p>
            <dl class="summary">
            <div><dt>It may</dt>\(wishes)</div>
            <div><dt>Until</dt><dd>\(until), unless you take it back before</dd></div>
            <div><dt>The answer goes to</dt><dd>\(Self.place(demand.redirectURI))</dd></div>
            </dl>
            <form method="post" action="\(exact: action)">
            \(hidden)
            <p class="actions"><button name="decision" value="allow" class="primary">Allow</button>
            <button name="decision" value="deny">Do not allow</button></p>
            </form>
            """
    }

    /// The origin of a redirect URI, or an app's own scheme.
    private static func place(_ uri: String) -> String {
        (try? Origin(uri))?.description ?? "an app on this device (\(uri.prefix { $0 != ":" }))"
    }
}
