import Assent
import AssentConfiguration
import Foundation
import HTTPTypes

/// Asks a server what can be learned without signing in: whether it has the realm, the client with its redirect URI and
/// scopes, the cookie and the journey of a client's file.
struct RegistrationExamination {
    let client: ClientFile

    /// What carries the questions.
    let transport: any HTTPTransport

    /// Of each question.
    private static let limits = HTTPLimits(
        connect: .seconds(5), read: .seconds(10), total: .seconds(15), replyBytes: 1 << 20)

    /// What providers answer a request that knows client, redirect URI and scopes, and forbids to ask the user anything
    /// (OpenID Connect Core §3.1.2.6).
    private static let wantsUser: Set = [
        "login_required", "interaction_required", "consent_required", "account_selection_required",
    ]

    private struct Answer {
        let status: Int
        let location: String?
        let object: JSONObject?

        /// The reason that a refusal gives, in the provider's words.
        var reason: String {
            let code = object?["error"]?.string
            let told = object?["error_description"]?.string ?? object?["message"]?.string
            let words = [code, told].compactMap(\.self).joined(separator: ": ")
            return shown(words.isEmpty ? "status \(status)" : words)
        }
    }

    /// What is right and what is wrong. Nothing changes there but that a journey is begun, which nobody goes on with.
    func findings() async -> [Diagnosis] {
        do {
            let settings = try JourneyConfiguration(
                server: client.server, realm: client.realm, sessionCookieName: client.cookieName,
                limits: JourneyLimits(http: Self.limits))
            let issuer = client.issuer ?? "\(settings.server)/oauth2/\(settings.realm.path)"
            let (description, problems) = try await described(issuer)
            guard let description else { return problems }
            var findings =
                client.registration == nil
                ? try await registration(at: description.endpoint, scopes: description.scopes)
                : [installations(areTaken: description.takesInstallations)]
            guard !client.isProviderOnly else { return findings }
            findings += try await cookie(settings)
            return findings + (await journey(settings))
        } catch let error as HTTPTransportError {
            return [
                Diagnosis(
                    .note,
                    "\(shown(client.place)) was not asked whether it knows this client. \(error.explanation)")
            ]
        } catch let error as any AssentError {
            return [Diagnosis(.problem, "\(shown(client.place)): \(shown(error.explanation))")]
        } catch {
            return [Diagnosis(.problem, "\(shown(client.place)): its answer cannot be read")]
        }
    }

    /// What is asked for of a provider's description.
    private struct Description {
        /// Where it takes authorization requests.
        let endpoint: String

        /// The scopes that it tells of.
        let scopes: [String]?

        /// Whether installations register there.
        let takesInstallations: Bool
    }

    private func described(_ issuer: String) async throws -> (found: Description?, problems: [Diagnosis]) {
        let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        let answer = try await ask(base + "/.well-known/openid-configuration")
        guard answer.status < 500 else { return (nil, [unasked(answer)]) }
        guard answer.status == 200, let object = answer.object else {
            let text =
                "\(shown(client.place)) does not exist: \(shown(base)) describes no OpenID provider (\(answer.reason)). "
                + "Correct \(client.issuer == nil ? "server or realm" : "issuer")"
            return (nil, [Diagnosis(.problem, text)])
        }
        let metadata = try ProviderMetadata(object, issuer: issuer)
        let scopes = object["scopes_supported"]?.array.map { $0.compactMap(\.string) }
        let found = Description(
            endpoint: metadata.authorizationEndpoint, scopes: scopes,
            takesInstallations: metadata.registrationEndpoint != nil)
        return (found, [])
    }

    /// Of an app whose installations register: `client.id` is the app's, and no request of a client has that.
    private func installations(areTaken: Bool) -> Diagnosis {
        let (place, id) = (shown(client.place), shown(client.clientID))
        guard areTaken else {
            let text =
                "\(place) takes no installations of apps, and the file has registration: "
                + "take it out, or let the server's operator define the app \(id)"
            return Diagnosis(.problem, text)
        }
        let text = "\(place) takes installations of apps; whether it knows the app \(id) is seen when this registers"
        return Diagnosis(.fine, text)
    }

    /// Sends an authorization request that must end without a user, no matter who asks.
    private func registration(at endpoint: String, scopes known: [String]?) async throws -> [Diagnosis] {
        let answer = try await authorize(client.scopes, at: endpoint)
        let (id, uri) = (shown(client.clientID), shown(client.redirectURI))
        guard (300..<400).contains(answer.status), let location = answer.location else {
            guard answer.status < 500 else { return [unasked(answer)] }
            let text =
                "\(shown(client.place)) refuses the client \(id) with the redirect URI \(uri): \(answer.reason). "
                + "Correct client.id or client.redirectURI, or let the server's operator register them"
            return [Diagnosis(.problem, text)]
        }
        let query = URLText.query(of: location)
        let error = error(in: answer)
        switch error {
        case let error? where Self.wantsUser.contains(error):
            let refused = try await scopesLeftOut(at: endpoint)
            guard refused.isEmpty else {
                let text =
                    "\(shown(client.place)) knows the client \(id), but gives it no token for "
                    + "\(shown(refused.joined(separator: " "))). Correct client.scopes, or let the server's operator "
                    + "allow them to the client"
                return [Diagnosis(.problem, text)]
            }
            let fine = "\(shown(client.place)) knows the client \(id), its redirect URI and its scopes"
            let missing = client.scopes.filter { known?.contains($0) == false }
            guard !missing.isEmpty else { return [Diagnosis(.fine, fine)] }
            let note = "\(fine), but does not tell of \(shown(missing.joined(separator: " "))) among its scopes"
            return [Diagnosis(.note, note)]
        case let error?:
            let told = (try? query?.single("error_description")) ?? nil
            let words = shown([error, told].compactMap(\.self).joined(separator: ": "))
            let scopes = shown(client.scopes.joined(separator: " "))
            let remedy =
                error == "invalid_scope"
                ? "Correct client.scopes (\(scopes)), or let the server's operator allow them to the client"
                : "Ask the server's operator what the client may do"
            let text = "\(shown(client.place)) knows the client \(id), but refuses its request: \(words). \(remedy)"
            return [Diagnosis(.problem, text)]
        case nil:
            let text =
                "\(shown(client.place)) leads a request of the client \(id) to a page of its own, "
                + "so whether it knows the client is seen at the sign-in"
            return [Diagnosis(.note, text)]
        }
    }

    private func authorize(_ scopes: [String], at endpoint: String) async throws -> Answer {
        let random = SystemRandom()
        let items = [
            ("response_type", "code"), ("client_id", client.clientID), ("redirect_uri", client.redirectURI),
            ("scope", scopes.joined(separator: " ")), ("state", random.token()), ("nonce", random.token()),
            ("code_challenge", random.token()), ("code_challenge_method", "S256"), ("prompt", "none"),
        ]
        return try await ask(items.reduce(endpoint) { URLText.appending($1.0, $1.1, to: $0) })
    }

    /// The error that an answer brings to the client's redirect URI.
    private func error(in answer: Answer) -> String? {
        guard let location = answer.location, location.utf8.starts(with: client.redirectURI.utf8) else { return nil }
        return (try? URLText.query(of: location)?.single("error")) ?? nil
    }

    /// The scopes that the client may not have. A provider may leave them out without a word (RFC 6749 §3.3), so each
    /// is asked for alone.
    private func scopesLeftOut(at endpoint: String) async throws -> [String] {
        guard client.scopes.count > 1 else { return [] }
        var refused: [String] = []
        for scope in client.scopes.prefix(Self.scopeLimit)
        where error(in: try await authorize([scope], at: endpoint)) == "invalid_scope" {
            refused.append(scope)
        }
        return refused
    }

    /// The most scopes that are asked for one by one.
    private static let scopeLimit = 16

    /// The session's cookie, as AM and Assent's server tell of it; what they do not tell is not looked at.
    private func cookie(_ settings: JourneyConfiguration) async throws -> [Diagnosis] {
        let answer = try await ask("\(settings.server)/json/\(settings.realm.path)/serverinfo/*")
        guard let name = answer.object?["cookieName"]?.string, name != client.cookieName else { return [] }
        let text =
            "the session cookie of \(shown(client.place)) is called \(shown(name)), not \(shown(client.cookieName)): "
            + "correct cookieName"
        return [Diagnosis(.problem, text)]
    }

    private func journey(_ settings: JourneyConfiguration) async -> [Diagnosis] {
        let name = shown(client.journey)
        switch await JourneyClient(configuration: settings, transport: transport).start(client.journey) {
        case .continue, .success: return [Diagnosis(.fine, "\(shown(client.place)) has the journey \(name)")]
        case .error(let error) where error.status < 500 && error.status != 429:
            let reason = error.message.isEmpty ? error.detail : error.message
            let text =
                "\(shown(client.place)) does not begin the journey \(name): \(shown(reason)) "
                + "Correct journey, or name another with assent login --journey"
            return [Diagnosis(.problem, text)]
        case .error(let error):
            return [Diagnosis(.note, "whether there is a journey \(name) is not known: status \(error.status)")]
        case .failure(let failure):
            return [Diagnosis(.note, "whether there is a journey \(name) is not known. \(failure.explanation)")]
        }
    }

    private func unasked(_ answer: Answer) -> Diagnosis {
        Diagnosis(
            .note,
            "\(shown(client.place)) does not serve now (status \(answer.status)), "
                + "so it was not asked whether it knows this client")
    }

    private func ask(_ url: String) async throws -> Answer {
        let reply = try await transport.send(
            try HTTPCall(.get, url: url, headerFields: [.accept: "application/json"], limits: Self.limits))
        let body = try await reply.body.collect(upTo: Self.limits.replyBytes)
        return Answer(
            status: reply.status, location: reply.response.headerFields[.location],
            object: (try? JSONValue.parse(body))?.object)
    }
}

/// A text from elsewhere as one line of a finding.
private func shown(_ text: String) -> String { DisplayText.escapedForTerminal(String(text.prefix(300))) }
