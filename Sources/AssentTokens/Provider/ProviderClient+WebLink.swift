import AssentCore
import Foundation
import HTTPTypes

extension ProviderClient {
    /// Asks for a link that signs a browser in and leads it to `target`.
    ///
    /// - Throws: ``TokenError``: `webLinkDisabled`; `webLinkRefused`; `malformedReply` for an answer that is not a link
    ///   of the provider's own.
    func webLink(to target: String, _ tokens: TokenSet) async throws -> WebLink {
        guard let endpoint = try await metadata().webLinkEndpoint else {
            throw TokenError(.webLinkDisabled, "The server signs no browser in for apps.")
        }
        var form = FormItems()
        form.append("target", target)
        let asked = now
        let reply = try await post(form, to: endpoint, tokens)
        guard reply.status == 200 else {
            throw TokenError.webLinkRefused(reply.response, oauthError: reply.oauthError)
        }
        // It is opened as it is, so it must be the server's.
        guard let object = reply.object, let url = object["url"]?.string, let seconds = object["expires_in"]?.integer,
            (1...3600).contains(seconds), url.utf8.count <= 4096, let origin = try? Origin(url),
            origin == (try? Origin(endpoint))
        else {
            throw TokenError(
                .malformedReply, "The server's answer has no link to the server itself.", status: reply.status)
        }
        return WebLink(url: url, expiresAt: asked.addingTimeInterval(TimeInterval(seconds)))
    }

    /// Posts a form with the access token, with a proof where it is bound to a key. A second copy makes another link,
    /// and harms nobody.
    private func post(
        _ form: FormItems, to url: String, _ tokens: TokenSet
    ) async throws -> ProviderExchange.Reply {
        guard let binding = tokens.key else {
            return try await exchange.post(
                url, form: form, fields: [.authorization: TokenScheme.bearer.field(tokens.accessToken)])
        }
        let target = ProofMaker.Target(
            method: .post, url: url, role: .authorizationServer, token: tokens.accessToken)
        let key = try await proofs.keys.key(of: binding)
        return try await proofs.exchange(target, key: key, isHarmless: true) { proof in
            var fields = HTTPFields()
            fields.setBound(tokens.accessToken, proof: proof)
            return try await exchange.post(url, form: form, fields: fields)
        } read: { reply in
            (reply.fields, ResourceRefusal(reply.response) == .nonce)
        }
    }
}

/// Links that sign a browser in as the user whose tokens these are.
package struct BrowserLinks: Sendable {
    private let tokens: SignInTokens
    private let provider: ProviderClient

    /// Links for who is the user of `tokens` now, and for nobody who signs in later.
    package init(_ tokens: TokenManager) {
        self.tokens = SignInTokens(tokens)
        provider = tokens.provider
    }

    /// Asks for a link. A token that the server refuses is renewed once.
    ///
    /// - Throws: ``TokenError`` as ``TokenManager/tokens(rejecting:)``, `webLinkDisabled` and `webLinkRefused`;
    ///   `sessionChanged` when somebody has signed out, or in, since the links were made.
    package func make(to target: String) async throws -> WebLink {
        let current = try await tokens.tokens()
        do {
            return try await provider.webLink(to: target, current)
        } catch let error as TokenError where error.refusal == .token {
            let renewed = try await tokens.tokens(rejecting: current.accessToken)
            return try await provider.webLink(to: target, renewed)
        }
    }
}
