import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// `assent status`
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Say who is signed in, at which server, and until when.",
        discussion: """
            The server is asked how long the session lasts, which does not prolong it. When the server does not answer, you \
            see what is kept here. When the session has ended, it is asked whether the tokens have, too. Exit status: \
            0 somebody is signed in, 1 nobody is.
            """)

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Print the result as JSON; times are seconds since 1970.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            var profile = try client.load()
            let server = profile.file
            profile.file.resources.insert(
                .init(origin: try Origin(server.server).description, credential: "session"), at: 0)
            let assent = try profile.assent()
            let status = try await SignInStatus.look(assent, at: server)
            let registration = try await assent.registration?.current()
            await assent.shutdown()
            if json {
                var result = status?.json(server, profile: profile.name).object ?? ["signedIn": false]
                result["registration"] = registration.map { .object($0.status) }
                console.emit(.object(result))
            } else if let status {
                for line in status.lines(server) { console.say(line) }
            } else {
                console.say("Nobody is signed in at \(DisplayText.escapedForTerminal(server.server)).")
            }
            if !json, server.registration != nil {
                console.say(registration?.line ?? "Registration:  none yet, made by the next sign-in")
            }
            if !json, status == nil { console.say("Next:  \(profile.typed("login"))") }
            if status?.isSignedIn != true { throw ExitCode(1) }
        }
    }
}

/// Who is signed in, and until when.
struct SignInStatus: Sendable {
    /// What the server says of the session.
    enum SessionState: Sendable {
        /// There is none: the sign-in was in a browser.
        case none
        /// It ends at `idle` unless it is used, and at `end` in any case.
        case alive(idle: Date?, end: Date?)
        /// The server does not know it any more.
        case ended
        /// The server did not say, and why.
        case unknown(String)

        fileprivate var hasEnded: Bool {
            if case .ended = self { true } else { false }
        }
    }

    let user: String
    let session: SessionState
    let scopes: [String]
    let accessTokenEnd: Date?
    let hasTokens: Bool
    let hasRefreshToken: Bool

    /// Whether there is something to go on with.
    var isSignedIn: Bool {
        switch session {
        case .none: hasTokens
        case .alive, .unknown: true
        case .ended: hasRefreshToken
        }
    }

    /// Looks into the vault, and asks the server about the session.
    static func look(_ assent: Assent, at server: ClientFile) async throws -> SignInStatus? {
        guard let user = try await assent.user() else { return nil }
        var tokens = try await assent.tokens.storedTokens()
        var name: String?
        var session = SessionState.none
        if user.session != nil { (name, session) = await ask(assent, server) }
        let claims = user.idToken?.claims
        if name == nil { name = claims.flatMap { Self.name(in: $0.object) } }
        // The ID token of a sign-in in a browser may have nothing but a number for the user. Whether tokens outlive a
        // session that has ended, only the server knows.
        if tokens != nil, name == nil || session.hasEnded {
            do {
                name = Self.name(in: try await assent.tokens.userInfo().object) ?? name
            } catch let error as TokenError where error.code == .signInNeeded {
                tokens = nil
            } catch {
                // It did not say.
            }
        }
        let known = name ?? claims?["sub"]?.string
        return SignInStatus(
            user: known ?? "a user whose name is not known here", session: session, scopes: tokens?.scopes ?? [],
            accessTokenEnd: tokens?.expiresAt, hasTokens: tokens != nil, hasRefreshToken: tokens?.refreshToken != nil)
    }

    /// The name in claims by which people know a user.
    private static func name(in claims: JSONObject) -> String? {
        ["preferred_username", "name", "email"].lazy.compactMap { claims[$0]?.string }.first { !$0.isEmpty }
    }

    private static func ask(_ assent: Assent, _ server: ClientFile) async -> (String?, SessionState) {
        do {
            let realm = try JourneyRealm(server.realm).path
            var headers = HTTPFields()
            if let name = HTTPField.Name("Accept-API-Version") { headers[name] = "resource=4.0, protocol=1.0" }
            var call = MutableResourceRequest(
                .post("\(server.server)/json/\(realm)/sessions?_action=getSessionInfo", json: [:], headers: headers))
            // The file says where the server is, and whether calls to it are sealed.
            call.allowsUnsealed = true
            let reply = try await assent.send(call.immutable)
            let bytes = try await reply.body.collect(upTo: 1 << 20)
            guard reply.status == 200 else {
                return (nil, [401, 403].contains(reply.status) ? .ended : .unknown("it answered \(reply.status)"))
            }
            let answer = try JSONValue.parse(bytes)
            func date(_ name: String) -> Date? { answer[name]?.string.flatMap { try? Date($0, strategy: .iso8601) } }
            return (
                answer["username"]?.string,
                .alive(idle: date("maxIdleExpirationTime"), end: date("maxSessionExpirationTime"))
            )
        } catch let error as TokenError where error.code == .signInNeeded {
            return (nil, .ended)
        } catch let error as any AssentError {
            return (nil, .unknown(error.detail))
        } catch {
            return (nil, .unknown("its answer could not be read"))
        }
    }

    private static let sessionNeeded = "               Approvals, devices and administration need one: assent login"

    /// For a person.
    func lines(_ server: ClientFile) -> [String] {
        var lines = ["\(user) is signed in at \(server.place)."]
        switch session {
        case _ where !isSignedIn:
            let again = server.isProviderOnly ? "assent login --browser" : "assent login"
            lines[0] = "\(user) was signed in at \(server.place)."
            lines.append("Session:       the server does not know it any more. Sign in again: \(again)")
        case .none:
            lines.append("Session:       none, only tokens: the sign-in was in a browser")
            lines.append(Self.sessionNeeded)
        case .alive(let idle, let end):
            var text = "Session:       valid"
            if let idle { text += ", until \(Self.text(idle)) unless it is used" }
            if let end { text += ", until \(Self.text(end)) at the latest" }
            lines.append(text)
        case .ended:
            lines.append("Session:       the server does not know it any more; the tokens outlive it")
            lines.append(Self.sessionNeeded)
        case .unknown(let reason): lines.append("Session:       the server did not say whether it is valid: \(reason)")
        }
        if let issuer = try? server.issuerName { lines.append("Issuer:        \(issuer)") }
        if hasTokens {
            let end = accessTokenEnd.map { "until \(Self.text($0))" } ?? "without a known end"
            lines.append("Access token:  \(end)\(hasRefreshToken ? ", renewed when it is needed" : "")")
            lines.append("Scopes:        \(scopes.joined(separator: " "))")
        } else if isSignedIn {
            lines.append("Access token:  none yet, made when it is needed")
        }
        return lines.map(DisplayText.escapedForTerminal)
    }

    /// For a script.
    func json(_ server: ClientFile, profile: String) -> JSONValue {
        func seconds(_ date: Date?) -> JSONValue { date.map { .integer(Int64($0.timeIntervalSince1970)) } ?? .null }
        var known: JSONValue = .null
        switch session {
        case .none: break
        case .alive(let idle, let end):
            known = ["valid": true, "idle_expires_at": seconds(idle), "expires_at": seconds(end)]
        case .ended: known = ["valid": false]
        case .unknown(let reason): known = ["valid": .null, "reason": .string(reason)]
        }
        return [
            "signedIn": .bool(isSignedIn), "user": .string(user), "server": .string(server.server),
            "realm": .string(server.realm), "issuer": (try? server.issuerName).map(JSONValue.string) ?? .null,
            "profile": .string(profile), "session": known,
            "expires_at": seconds(accessTokenEnd), "scope": .string(scopes.joined(separator: " ")),
        ]
    }

    private static func text(_ date: Date) -> String { date.formatted(.iso8601) }
}

extension ClientFile {
    /// The name of the OpenID provider, which other programs ask for as the issuer.
    fileprivate var issuerName: String {
        get throws { try issuer ?? "\(server)/oauth2/\(JourneyRealm(realm).path)" }
    }
}
