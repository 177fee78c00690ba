import AssentCore
import HTTPTypes

/// One post to the policy server, and its reply, bounded.
struct PolicyPost {
    let url: String
    let version: String
    let content: JSONObject
    /// What is said when there is no reply.
    var loss = EnforcementError.Code.unavailable

    /// What came back.
    struct Reply {
        let status: Int
        let json: JSONValue?
        let challenges: [String]

        /// AM's `message`, for people: one line of text that shows as it is, cut after 300 characters.
        var message: String? {
            guard let text = json?["message"]?.string else { return nil }
            return String(
                text.prefix(300).unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) })
        }

        /// Whether the reply is about the proof of a key (RFC 9449 §7.1).
        var wantsProof: Bool {
            challenges.contains { field in
                ((try? Challenge.parse(field)) ?? []).contains { $0.isScheme(TokenScheme.dpop.rawValue) }
            }
        }
    }

    /// Sends it, with a session in the field of the cookie's name.
    func send(
        _ server: PolicyServer, session: Secret?, limits: HTTPLimits, over transport: any HTTPTransport
    ) async throws(EnforcementError) -> Reply {
        var fields = HTTPFields()
        fields[.accept] = "application/json"
        fields[.contentType] = "application/json"
        fields[.acceptAPIVersion] = version
        fields[.requestedWith] = "assent"
        if let session { fields[server.sessionField] = session.reveal() }
        var call: HTTPCall
        do throws(WireError) {
            call = try HTTPCall(
                .post, url: url, headerFields: fields, body: HTTPBody(JSONValue.object(content).serializedBytes()),
                limits: limits)
        } catch {
            throw EnforcementError(.invalidConfiguration, "The server's URL cannot be used: \(error.detail).")
        }
        call.isSentOnce = true
        let reply: HTTPReply
        do {
            reply = try await transport.send(call)
        } catch let error as HTTPTransportError where !error.mayHaveHadEffect {
            throw EnforcementError(.unavailable, "The policy server cannot be reached: \(error.detail)")
        } catch {
            throw lost(error)
        }
        do {
            let bytes = try await reply.body.collect(upTo: limits.replyBytes)
            return Reply(
                status: reply.status, json: try? JSONValue.parse(bytes, limits: JSONLimits(bytes: limits.replyBytes)),
                challenges: reply.response.headerFields[values: .wwwAuthenticate])
        } catch {
            // Whatever its reply would have said, the server has acted.
            throw lost(error)
        }
    }
    private func lost(_ error: any Error) -> EnforcementError {
        let why = (error as? HTTPTransportError)?.detail ?? "\(type(of: error))"
        return EnforcementError(loss, "The policy server gave no answer: \(why)")
    }
}
