import AssentCore
import AssentEngine

/// A page that only says something.
struct SignInMessage {
    let title: String
    let text: String
    var again: String?
    var isError = true

    /// What is said instead of the engine's words, which are made for programs.
    init(_ error: EngineError, again: String?) {
        switch error.code {
        case .transactionUnreadable:
            self.init(
                "This request cannot be approved",
                "It was begun before, it has expired, or you are not signed in here as the user who made it. "
                    + "Go back to the app and try again.")
        case .stepExpired: self.init("This took too long", "Please start again.", again: again)
        case _ where error.isFailedSignIn: self.init("Not signed in", SignInNotice(error).text, again: again)
        case .unknownJourney: self.init("This cannot be done here", "There is no such way to sign in.")
        case .busy, .unavailable, .internalFailure:
            self.init("Not available", "The server cannot answer now. Please try again in a moment.", again: again)
        case .invalidRequest, .unknownRealm, .unknownIndexType, .authIDUnreadable, .authIDInvalid, .stepAlreadyAnswered,
            .stepAnsweredDifferently, .stepBeingAnswered, .wrongCallbackCount, .missingCallback, .invalidAnswer:
            self = .outOfDate(again: again)
        default: self.init("This does not work", error.detail)
        }
    }

    /// What is said where an app has sent a browser with a request that cannot be granted, and there is nowhere to send
    /// it back to.
    init(_ error: OAuthError) {
        self.init(
            "This link does not work",
            "The app that sent you here asks for something that it may not have, or its address is not known here. "
                + "Go back to the app. Whoever is in charge of it needs to know: \(error.code.rawValue). \(error.detail)"
        )
    }

    /// What is said to a request that cannot be read.
    init(_ error: RequestError, again: String?) {
        guard error.status != 400 else {
            self = .outOfDate(again: again)
            return
        }
        self.init("This does not work", error.message)
    }

    private static func outOfDate(again: String?) -> SignInMessage {
        SignInMessage(
            "This page is out of date",
            "It was answered before, or the link that led here is damaged. Please start again.", again: again)
    }

    private init(_ title: String, _ text: String, again: String? = nil, isError: Bool = true) {
        self.title = title
        self.text = text
        self.again = again
        self.isError = isError
    }

    static let signedIn = SignInMessage("You are signed in", "You can close this page.", isError: false)

    static let signedOut = SignInMessage("You are signed out", "You can close this page.", isError: false)

    static let unknownRealm = SignInMessage(
        "There is nothing here",
        "The address names a realm that this server does not have. Check it, or go back to the app that you came from.")

    static let approved = SignInMessage(
        "Approved", "Go back to the app: it can do now what you have approved.", isError: false)

    static let used = SignInMessage(
        "Approved before",
        "You have approved this, and the app has sent it. Go back to the app to see what came of it.",
        isError: false)

    static let notApproved = SignInMessage(
        "Not approved", "You declined it, or an answer was wrong. Nothing was done. Go back to the app to try again.")

    static let foreignTarget = SignInMessage(
        "This link is not good",
        "It would lead you to a place that does not belong to this server. Go back to the app that you came from.")

    static let foreignForm = SignInMessage(
        "This form is not ours",
        "It was sent from another site, or your browser does not say where it was sent from. Go back to the app that you came from."
    )

    static let unsupported = SignInMessage(
        "This needs an app", "This way to sign in asks for something that this page cannot show.")

    var html: HTML {
        let link: HTML? = again.map {
            #"<p class="actions"><a class="button" href="\#(exact: $0)">Start again</a></p>"#
        }
        return """
            <h1>\(title)</h1>
            <p class="lead"\(isError ? #" role="alert""# : "" as HTML)>\(text)</p>
            \(link)
            """
    }
}

/// What went wrong, above a form that can be filled again. The raw value stands in a cookie.
enum SignInNotice: String, Sendable, Hashable, CaseIterable {
    case notAccepted, failed, inactive, tookTooLong, locked, differentUser, answeredBefore, noLongerGood

    init(_ error: EngineError) {
        self =
            switch error.code {
            case .userInactive: .inactive
            case .stepExpired: .tookTooLong
            case .accountLocked: .locked
            case .differentUser: .differentUser
            default: .failed
            }
    }

    var text: String {
        switch self {
        case .notAccepted: "That was not accepted. Please try again."
        case .failed: "That did not work. Please check what you have entered and try again."
        case .inactive: "This account is not active."
        case .tookTooLong: "This took too long. Please start again."
        case .locked: "This account is locked for now. Try again later."
        case .differentUser: "You are signed in as somebody else."
        case .answeredBefore: "You had answered that page before. This is where your sign-in stands."
        case .noLongerGood:
            "That page is no longer good, or your browser keeps no cookies from here. Please start again."
        }
    }

    /// Whether it is about what the user has entered.
    var isAboutFields: Bool { self == .notAccepted || self == .failed }
}

/// Pages around the steps.
enum SignInPages {
    /// What stands at the server's base URL; with where to sign in, where there is only one place.
    static func welcome(signIn: String?) -> HTML {
        let link: HTML? = signIn.map {
            #"<p class="actions"><a class="button" href="\#(exact: $0)">Sign in</a></p>"#
        }
        return """
            <h1>Assent</h1>
            <p class="lead">This server signs you in, and asks you before something is done in your name. \
            Apps send you here when they need it.</p>
            \(link)
            """
    }

    /// Asks before a transaction's journey begins.
    static func beginning(_ action: String) -> HTML {
        """
        <h1>Approve a request</h1>
        <p class="lead">A service asks for your approval. You will see what it is before you decide.</p>
        <form method="post" action="\(exact: action)">
        <p class="actions"><button class="primary">Continue</button></p>
        </form>
        """
    }

    /// The answer to a client that takes it as a form.
    static func posting(_ redirect: AuthorizationRedirect) -> HTML {
        let fields: [HTML] = redirect.parameters.items.map {
            #"<input type="hidden" name="\#(exact: $0.name)" value="\#(exact: $0.value)">"#
        }
        return """
            <h1>Going back</h1>
            <p class="lead">You are being led back to where you came from.</p>
            <form method="post" action="\(exact: redirect.uri)">
            \(fields)<p class="actions"><button class="primary">Continue</button></p>
            </form>
            """
    }

    /// The way back, for a browser that does not go by itself.
    static func goingBack(_ url: String) -> HTML {
        """
        <h1>Going back</h1>
        <p class="lead">You are being led back to where you came from.</p>
        <p class="actions"><a class="button" href="\(exact: url)">Continue</a></p>
        """
    }
}
