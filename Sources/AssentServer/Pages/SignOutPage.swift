import AssentCore
import AssentEngine

/// The question whether a user wants to sign out, where no ID token says that it is theirs (OpenID Connect RP-Initiated
/// Logout 1.0 §2): any page could have led them here.
struct SignOutPage {
    let question: EndSessionQuestion
    let language: PageLanguage

    /// What the window is called.
    var title: String { language[.signOutTitle] }

    /// The page's content, whose form is sent to `action`.
    func html(action: String) -> HTML {
        let hidden: [HTML] = question.parameters.form.items.map {
            #"<input type="hidden" name="\#(exact: $0.name)" value="\#(exact: $0.value)">"#
        }
        let asker: HTML? = question.client.map {
            " \(language.html(.askedBy, ["app": "<strong>\($0.name ?? $0.id)</strong>"]))"
        }
        let user: HTML = "<strong>\(question.user.username)</strong>"
        return """
            <h1>\(title)</h1>
            <p class="lead">\(language.html(.signOutText, ["user": user]))\(asker)</p>
            <form method="post" action="\(exact: action)">
            \(hidden)
            <p class="actions"><button name="decision" value="allow" class="primary">\(language[.signOut])</button>
            <button name="decision" value="deny">\(language[.staySignedIn])</button></p>
            </form>
            """
    }
}
