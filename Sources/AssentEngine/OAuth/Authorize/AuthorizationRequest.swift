import AssentCore

/// A request to the authorization endpoint whose client and redirect URI are already known to be good, so that every
/// error goes to the client.
struct AuthorizationRequest: Sendable {
    enum Prompt: String {
        case none
        case login
        case consent
        /// There is one account at a time here, so another one is another sign-in.
        case selectAccount = "select_account"
    }

    /// What the client gets (OAuth 2.0 Multiple Response Types).
    enum ResponseType: String {
        case code
        /// Nothing but the news that it would get it: whether the session lives, and the user agrees (§4).
        case none
        /// An ID token and no code, in the fragment, for a page that asks whose session lives.
        case idToken = "id_token"
    }

    /// The parameter of ``continuation(leastMaxAge:)`` that says that the user was asked for a stronger sign-in. A
    /// client that sends it itself goes without.
    private static let askedParameter = "assent_acr_asked"

    let client: OAuthClient
    let responseType: ResponseType
    let redirectURI: String
    let scopes: [String]
    let state: String?
    let nonce: String?
    let codeChallenge: String?
    /// The key that the code shall belong to (`dpop_jkt`, RFC 9449 §10).
    let sender: SenderBinding?
    let prompts: Set<Prompt>
    let maxAge: Int64?
    let idTokenHint: String?
    let acrValues: [String]
    private let parameters: OAuthParameters

    /// Reads the parameters; with `isSilent` the user is asked nothing, whatever `prompt` says.
    init(
        _ parameters: OAuthParameters, client: OAuthClient, redirectURI: String, isSilent: Bool = false
    ) throws(OAuthError) {
        self.parameters = parameters
        self.client = client
        self.redirectURI = redirectURI
        state = parameters["state"]
        nonce = parameters["nonce"]
        idTokenHint = parameters["id_token_hint"]
        acrValues = (parameters["acr_values"] ?? "").split(separator: " ").map(String.init)
        for (name, code) in [
            ("request", OAuthError.Code.requestNotSupported), ("request_uri", .requestURINotSupported),
        ]
        where parameters[name] != nil {
            throw OAuthError(code, "The parameter \(name) is not supported.")
        }
        guard let responseType = ResponseType(rawValue: try parameters.required("response_type")),
            client.grantTypes.contains(.authorizationCode)
        else { throw OAuthError(.unsupportedResponseType, "Response type is not supported.") }
        self.responseType = responseType
        let modes = responseType == .idToken ? Self.fragmentModes : Self.modes
        guard modes.contains(parameters["response_mode"]) else {
            throw .invalidRequest("Response mode is not supported.")
        }
        scopes = try Self.scopes(parameters, client: client)
        codeChallenge = responseType == .code ? try Self.challenge(parameters, client: client) : nil
        sender = responseType == .code ? try Self.sender(parameters) : nil
        prompts = isSilent ? [.none] : try Self.prompts(parameters)
        maxAge = try Self.maxAge(parameters)
        if responseType == .idToken { try checkSessionCheck() }
    }

    private static let modes: Set<String?> = ["query", AuthorizationRedirect.postedMode, nil]
    private static let fragmentModes: Set<String?> = [AuthorizationRedirect.fragmentMode, nil]

    /// An ID token without a code is for nothing but looking whether the session lives: it goes to a page whose origin
    /// the client lists, and nobody is asked for it.
    private func checkSessionCheck() throws(OAuthError) {
        guard client.checksSessions, let origin = try? Origin(redirectURI),
            client.allowedOrigins.contains(origin.description)
        else { throw OAuthError(.unsupportedResponseType, "Response type is not supported.") }
        guard prompts == [.none], nonce != nil, scopes.contains("openid") else {
            throw .invalidRequest("response_type=id_token needs prompt=none, a nonce and the scope openid.")
        }
    }

    /// Whether the user is to sign in whatever session there is. A session may not be older than nothing, so that
    /// `max_age=0` says the same as `prompt=login` (OpenID Connect Core §3.1.2.1).
    var demandsLogin: Bool { !prompts.isDisjoint(with: [.login, .selectAccount]) || maxAge == 0 }

    /// Whether the user was asked before for a sign-in that the client would have.
    var hasAskedForContext: Bool { parameters[Self.askedParameter] != nil }

    /// The parameter of ``withDecision(of:)`` that says who was asked, by their id.
    private static let userParameter = "assent_user"

    /// What says the user's decision. It is for this request alone: a URL that a browser keeps must not have it, since
    /// `csrf` is the token of the session, and by a URL nobody can decide.
    private static let ofDecision: Set = ["decision", "csrf", userParameter]

    /// The request to come back with after the user has signed in: it asks for no sign-in that has just been, however
    /// long the way back is.
    func continuation(leastMaxAge: Int64) throws(OAuthError) -> OAuthParameters {
        let rest = prompts.subtracting([.login, .selectAccount]).map(\.rawValue).sorted().joined(separator: " ")
        var items = parameters.form.items.compactMap { item -> FormItems.Item? in
            switch item.name {
            case "prompt": return rest.isEmpty ? nil : FormItems.Item(item.name, rest)
            case "max_age": return maxAge.map { FormItems.Item(item.name, "\(max($0, leastMaxAge))") } ?? item
            default: return Self.ofDecision.contains(item.name) ? nil : item
            }
        }
        if !acrValues.isEmpty, !hasAskedForContext { items.append(FormItems.Item(Self.askedParameter, "1")) }
        return try OAuthParameters(FormItems(items))
    }

    /// The request to send again with the user's decision, however long that takes.
    func withDecision(of user: User) throws(OAuthError) -> OAuthParameters {
        let dropped = Self.ofDecision.union(["max_age"])
        var items = parameters.form.items.filter { !dropped.contains($0.name) }
        items.append(FormItems.Item(Self.userParameter, user.id))
        return try OAuthParameters(FormItems(items))
    }

    /// What was said, if the question was for the user of this session: the browser may have got another user's since.
    /// Who decides by the session's own token (`csrf`) was shown no question of ours.
    func decision(_ said: AuthorizationDecision?, in session: LiveSession?) -> AuthorizationDecision? {
        guard let asked = parameters[Self.userParameter] else { return said }
        guard let session, asked.utf8.elementsEqual(session.user.id.utf8) else { return nil }
        return said
    }

    private static func scopes(_ parameters: OAuthParameters, client: OAuthClient) throws(OAuthError) -> [String] {
        let scopes = try parameters.scopes() ?? client.defaultScopes
        guard !scopes.isEmpty else { throw OAuthError(.invalidScope, "No scope requested and no default scope.") }
        return try OAuthClient.allowed(scopes, where: client.scopes.contains)
    }

    private static func challenge(_ parameters: OAuthParameters, client: OAuthClient) throws(OAuthError) -> String? {
        guard let challenge = parameters["code_challenge"] else {
            guard !client.requiresPKCE, client.kind != .public, parameters["code_challenge_method"] == nil else {
                throw .invalidRequest("Missing parameter, 'code_challenge'")
            }
            return nil
        }
        // Without a method the challenge would be the verifier itself (RFC 7636 §4.3), for everybody to read.
        guard parameters["code_challenge_method"] == "S256" else {
            throw .invalidRequest("The code challenge method must be S256.")
        }
        guard Base64URL.decode(challenge)?.count == 32 else {
            throw .invalidRequest("The code challenge is not the unpadded base64url of a SHA-256.")
        }
        return challenge
    }

    private static func sender(_ parameters: OAuthParameters) throws(OAuthError) -> SenderBinding? {
        guard let thumbprint = parameters["dpop_jkt"] else { return nil }
        guard Base64URL.decode(thumbprint)?.count == 32 else {
            throw .invalidRequest("The parameter dpop_jkt is not the unpadded base64url of a SHA-256.")
        }
        return .key(thumbprint: thumbprint)
    }

    private static func prompts(_ parameters: OAuthParameters) throws(OAuthError) -> Set<Prompt> {
        // Values that we do not know ask for nothing that we could do.
        let words = Set((parameters["prompt"] ?? "").split(separator: " ").map(String.init))
        guard !words.contains("none") || words.count == 1 else {
            throw .invalidRequest("prompt=none goes with no other value.")
        }
        return Set(words.compactMap(Prompt.init(rawValue:)))
    }

    private static func maxAge(_ parameters: OAuthParameters) throws(OAuthError) -> Int64? {
        guard let text = parameters["max_age"] else { return nil }
        guard let seconds = Int64(text), seconds >= 0, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .invalidRequest("max_age is a number of seconds.")
        }
        return seconds
    }
}
