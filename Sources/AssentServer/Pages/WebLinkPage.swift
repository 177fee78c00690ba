import AssentCore
import AssentEngine

/// The question of a link by which an app signs a browser in. Who has sent somebody a link of their own would else sign
/// them in as somebody they are not: so it says who that is.
struct WebLinkPage {
    let link: OpenedWebLink

    /// The app that the link is of, as users know it.
    let app: String?

    /// Who is signed in in this browser.
    let other: Other?

    let language: PageLanguage

    /// A session that the browser has already.
    enum Other: Hashable {
        /// That user's.
        case user(String)
        /// Somebody's, who is not named: of another realm, or with a key that a browser does not prove.
        case somebody

        /// The session of who opens the page; `nil` without one.
        init?(_ caller: Caller) {
            switch caller {
            case .session(let session, _, _): self = .user(session.user.username)
            case .foreignSession, .refusedToken, .refusedKind: self = .somebody
            case .anonymous, .accessToken: return nil
            }
        }
    }

    /// What the window is called.
    var title: String { language[.linkTitle] }

    /// The page's content, whose form is sent to `action` with the link in a field of that name.
    func html(action: String, _ name: String, _ secret: Secret) -> HTML {
        let user: HTML = "<strong>\(link.user.username)</strong>"
        let place: HTML = "<strong>\((try? Origin(link.target))?.description ?? link.target)</strong>"
        let asker: HTML? = app.map { " \(language.html(.askedBy, ["app": "<strong>\($0)</strong>"]))" }
        let warning: HTML? =
            switch other {
            case .user(let name): Self.warning(language.html(.linkReplaces, ["user": "<strong>\(name)</strong>"]))
            case .somebody: Self.warning(language.html(.linkReplacesSomebody, [:]))
            case nil: nil
            }
        return """
            <h1>\(title)</h1>
            <p class="lead">\(language.html(.linkText, ["user": user, "place": place]))\(asker)</p>
            \(warning)<p>\(language[.linkOnlyIfYou])</p>
            <form method="post" action="\(exact: action)">
            <input type="hidden" name="\(exact: name)" value="\(exact: secret.reveal())">
            <p class="actions"><button class="primary">\(language[.continueButton])</button></p>
            </form>
            """
    }

    private static func warning(_ text: HTML) -> HTML { "<p role=\"alert\">\(text)</p>\n" }
}
