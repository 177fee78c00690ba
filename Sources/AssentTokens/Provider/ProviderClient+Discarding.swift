import AssentCore
import Logging

extension ProviderClient {
    /// How long the one who has tokens revoked that nobody uses waits for that.
    private static let revocationLimit = Duration.seconds(5)

    /// Revokes tokens that nobody will use, as far as possible.
    func discard(refreshToken: Secret?, accessToken: Secret) async {
        // A caller that is cancelled keeps nothing from being revoked.
        await Task {
            do {
                try await revoke(refreshToken: refreshToken, accessToken: accessToken, within: Self.revocationLimit)
            } catch {
                logger.warning("tokens that nobody uses were not revoked", metadata: ["reason": "\(error)"])
            }
        }.value
    }

    /// The tokens of a reply, if they are of the type that was asked for.
    ///
    /// A new grant whose tokens are not bound is revoked: they are good for someone who has read them, and nobody else
    /// knows of them. Those of a refresh are not, since with them the stored tokens, which are bound, might end.
    ///
    /// - Throws: ``TokenError`` as ``TokenReply/checkType(isBound:)``.
    func accepted(_ reply: TokenReply, isBound: Bool, isNewGrant: Bool) async throws -> TokenReply {
        do throws(TokenError) {
            try reply.checkType(isBound: isBound)
        } catch {
            if isNewGrant, error.code == .unboundTokens {
                await discard(refreshToken: reply.refreshToken, accessToken: reply.accessToken)
            }
            throw error
        }
        return reply
    }
}
