import AssentCore
import Foundation
import HTTPTypes

/// Sees all that the story's apps send and get, and keeps every secret in it.
struct SecretWitness: Sendable {
    private let seen = Locked<[(name: String, secret: Secret)]>([])

    /// What was seen, each once.
    var secrets: [(name: String, secret: Secret)] { seen.withLock { $0 } }

    func watching(_ transport: any HTTPTransport) -> any HTTPTransport {
        Watched(witness: self, transport: transport)
    }

    /// Members of JSON, fields of forms, and parameters of redirects that are secret, and what they are.
    private static let names = [
        "access_token": "access token", "refresh_token": "refresh token", "id_token": "ID token",
        "code": "authorization code", "code_verifier": "PKCE verifier", "authId": "authId", "tokenId": "session token",
        "token": "access or refresh token", "id_token_hint": "ID token",
    ]

    fileprivate func note(_ name: String, _ value: String) {
        // The first parts of a JWT are not secret, and say "localhost" as a certificate does: its last part is what
        // counts.
        let parts = value.split(separator: ".")
        let secret = Secret(parts.count == 3 ? String(parts[2]) : value)
        guard secret.count >= 6 else { return }
        seen.withLock { seen in
            if !seen.contains(where: { $0.secret == secret }) { seen.append((name, secret)) }
        }
    }

    fileprivate func note(_ fields: HTTPFields) {
        for field in fields {
            switch field.name.canonicalName {
            case "authorization": note("access token", String(field.value.split(separator: " ").last ?? ""))
            case "iplanetdirectorypro": note("session token", field.value)
            case "dpop": note("proof", field.value)
            case "location": noteParameters(of: field.value.split(separator: "?").last.map(String.init) ?? "")
            default: break
            }
        }
    }

    fileprivate func note(body: [UInt8]) {
        if let object = (try? JSONValue.parse(body))?.object {
            // The code of a problem document says what is wrong.
            let isProblem = object["status"] != nil
            for (key, name) in Self.names where !(isProblem && key == "code") {
                if let value = object[key]?.string { note(name, value) }
            }
        } else {
            noteParameters(of: String(decoding: body, as: UTF8.self))
        }
    }

    private func noteParameters(of text: String) {
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2, let name = Self.names[parts[0]], let value = parts[1].removingPercentEncoding {
                note(name, value)
            }
        }
    }

    private struct Watched: HTTPTransport {
        let witness: SecretWitness
        let transport: any HTTPTransport

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            witness.note(call.request.headerFields)
            if let bytes = call.body?.inMemory { witness.note(body: bytes) }
            let reply = try await transport.send(call)
            witness.note(reply.response.headerFields)
            let body = reply.body
            let copy = HTTPBody(length: body.length, isReplayable: body.isReplayable) { [witness] in
                let reading = Reading(body, witness: witness)
                return { try await reading.next() }
            }
            return HTTPReply(reply.response, body: copy)
        }
    }

    /// One reading of a body, noted at its end.
    private actor Reading {
        private var iterator: HTTPBody.AsyncIterator
        private var bytes: [UInt8] = []
        private let witness: SecretWitness

        init(_ body: HTTPBody, witness: SecretWitness) {
            iterator = body.makeAsyncIterator()
            self.witness = witness
        }

        func next() async throws -> [UInt8]? {
            var pulling = iterator
            let chunk = try await pulling.next()
            iterator = pulling
            if let chunk { bytes += chunk } else { witness.note(body: bytes) }
            return chunk
        }
    }
}
