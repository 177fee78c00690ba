import AssentCore
import AssentEngine

/// A page that only says something.
struct SignInMessage {
    let title: PageText
    let text: Text
    var again: String?
    var back: String?
    var isError = true

    /// What it says.
    enum Text {
        /// A text of the pages' own; a word in braces is the reason.
        case known(PageText, reason: String = "")
        /// What the engine says to programs, in English.
        case detail(String)
    }

    /// What is said instead of the engine's words, which are made for programs.
    init(_ error: EngineError, again: String?) {
        switch error.code {
        case .transactionUnreadable: self.init(.cannotApprove, .known(.cannotApproveText))
        case .stepExpired: self.init(.tooLong, .known(.tooLongText), again: again)
        case _ where error.isFailedSignIn: self.init(.notSignedIn, .known(SignInNotice(error).text), again: again)
        case .unknownJourney: self.init(.notHere, .known(.notHereText))
        case .busy, .unavailable, .internalFailure:
            self.init(.notAvailable, .known(.notAvailableText), again: again)
        case .outcomeUnknown: self.init(.notAvailable, .known(.outcomeUnknownText), again: again)
        case .invalidRequest, .unknownRealm, .unknownIndexType, .authIDUnreadable, .authIDInvalid, .stepAlreadyAnswered,
            .stepAnsweredDifferently, .stepBeingAnswered, .wrongCallbackCount, .missingCallback, .invalidAnswer:
            self.init(.outOfDate, .known(.outOfDateText), again: again)
        default: self.init(.doesNotWork, .detail(error.detail))
        }
    }

    /// What is said where an app has sent a browser with a request that cannot be granted, and there is nowhere to send
    /// it back to.
    init(_ error: OAuthError) {
        self.init(.badLink, .known(.badLinkText, reason: "\(error.code.rawValue). \(error.detail)"))
    }

    /// What is said to a request that cannot be read.
    init(_ error: RequestError, again: String?) {
        if error.status == 400 {
            self.init(.outOfDate, .known(.outOfDateText), again: again)
        } else {
            self.init(.doesNotWork, .detail(error.message))
        }
    }

    /// What is said to somebody with a session that belongs to an app's key.
    init(_ refusal: SenderProofRefusal) { self.init(.doesNotWork, .detail(refusal.reason)) }

    private init(_ title: PageText, _ text: Text, again: String? = nil, isError: Bool = true) {
        self.title = title
        self.text = text
        self.again = again
        self.isError = isError
    }

    static let signedIn = SignInMessage(.signedIn, .known(.closePage), isError: false)
    static let signedOut = SignInMessage(.signedOut, .known(.closePage), isError: false)
    static let approved = SignInMessage(.approved, .known(.approvedText), isError: false)
    /// It is approved, and the app that asked must send the request; `back` is the app's page, where it is known.
    static func approvedUnsent(back: String?) -> SignInMessage {
        var message = SignInMessage(.approved, .known(.approvedUnsentText), isError: false)
        message.back = back
        return message
    }

    static let used = SignInMessage(.used, .known(.usedText), isError: false)
    static let unknownRealm = SignInMessage(.nothingHere, .known(.nothingHereText))
    /// It was not approved, for this reason; `back` is the app's page, where it is known.
    static func notApproved(_ reason: PageText, back: String?) -> SignInMessage {
        var message = SignInMessage(.notApproved, .known(reason))
        message.back = back
        return message
    }

    static let foreignTarget = SignInMessage(.foreignTarget, .known(.foreignTargetText))
    static let foreignForm = SignInMessage(.foreignForm, .known(.foreignFormText))
    static let linkEnded = SignInMessage(.linkEnded, .known(.linkEndedText))
    static let unsupported = SignInMessage(.needsApp, .known(.needsAppText))

    /// The page, in the reader's language.
    func document(_ frame: PageFrame) -> PageDocument {
        PageDocument(title: frame.language[title], body: html(frame.language), frame: frame)
    }

    func html(_ language: PageLanguage) -> HTML {
        let link: HTML? = again.map {
            #"<p class="actions"><a class="button" href="\#(exact: $0)">\#(language[.startAgain])</a></p>"#
        }
        let way: HTML? = back.map { url in
            let place = (try? Origin(url))?.description ?? url
            return
                #"<p class="actions"><a class="button" href="\#(exact: url)">\#(language.html(.backTo, ["place": "\(place)"]))</a></p>"#
        }
        let said: HTML =
            switch text {
            case .known(let text, let reason): language.html(text, ["reason": "\(reason)"])
            case .detail(let detail): "\(detail)"
            }
        return """
            <h1>\(language[title])</h1>
            <p class="lead"\(isError ? #" role="alert""# : "" as HTML)>\(said)</p>
            \(link)\(way)
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

    var text: PageText {
        switch self {
        case .notAccepted: .notAccepted
        case .failed: .failed
        case .inactive: .inactive
        case .tookTooLong: .tookTooLong
        case .locked: .locked
        case .differentUser: .differentUser
        case .answeredBefore: .answeredBefore
        case .noLongerGood: .noLongerGood
        }
    }

    /// Whether it is about what the user has entered.
    var isAboutFields: Bool { self == .notAccepted || self == .failed }
}

/// Pages around the steps.
enum SignInPages {
    /// What stands at the server's base URL; with where to sign in, where there is only one place.
    static func welcome(signIn: String?, _ frame: PageFrame) -> HTML {
        let language = frame.language
        let link: HTML? = signIn.map {
            #"<p class="actions"><a class="button" href="\#(exact: $0)">\#(language[.signIn])</a></p>"#
        }
        return """
            <h1>\(frame.name ?? "Assent")</h1>
            <p class="lead">\(language[.welcome])</p>
            \(link)
            """
    }

    /// Asks before a transaction's journey begins.
    static func beginning(_ action: String, _ language: PageLanguage) -> HTML {
        """
        <h1>\(language[.approveRequest])</h1>
        <p class="lead">\(language[.beginning])</p>
        <form method="post" action="\(exact: action)">
        <p class="actions"><button class="primary">\(language[.continueButton])</button></p>
        </form>
        """
    }

    /// The answer to a client that takes it as a form.
    static func posting(_ redirect: AuthorizationRedirect, _ language: PageLanguage) -> HTML {
        let fields: [HTML] = redirect.parameters.items.map {
            #"<input type="hidden" name="\#(exact: $0.name)" value="\#(exact: $0.value)">"#
        }
        return """
            <h1>\(language[.goingBack])</h1>
            <p class="lead">\(language[.ledBack])</p>
            <form method="post" action="\(exact: redirect.uri)">
            \(fields)<p class="actions"><button class="primary">\(language[.continueButton])</button></p>
            </form>
            """
    }

    /// The way back, for a browser that does not go by itself.
    static func goingBack(_ url: String, _ language: PageLanguage) -> HTML {
        """
        <h1>\(language[.goingBack])</h1>
        <p class="lead">\(language[.ledBack])</p>
        <p class="actions"><a class="button" href="\(exact: url)">\(language[.continueButton])</a></p>
        """
    }
}
