public import AssentCore
import AssentJourney
import AssentTokens
import AssentTransportNIO
public import Foundation
import Logging

extension Assent {
    /// Signs in through a browser (RFC 8252): the user signs in at the server's own page, and the tokens come back
    /// here.
    ///
    /// ```swift
    /// let user = try await assent.login { url in print("Sign in at \(url)") }
    /// ```
    ///
    /// There is no AM session afterwards: tokens are renewed by their refresh token alone, and a step-up that needs the
    /// session is not possible. Cancel the task to give up.
    ///
    /// - Parameters:
    ///   - parameters: more items of the authorization request, for example `login_hint`, `prompt` or `acr_values`.
    ///   - timeout: seconds that the user has.
    ///   - open: opens the URL in a browser or shows it. It is called once and must not wait.
    /// - Returns: the user.
    /// - Throws: ``/AssentTokens/TokenError``, for example `authorizationRefused` with `oauthError` `access_denied`;
    ///   ``/AssentTransportNIO/NIOTransportError`` with code `notLoopback`, `cannotListen` or `noRedirect`;
    ///   `CancellationError`.
    @discardableResult
    public func login(
        parameters: [FormItems.Item] = [], timeout: TimeInterval = 300,
        browser open: @escaping @Sendable (String) -> Void
    ) async throws -> User {
        let receiver = try await LoopbackRedirectReceiver.listening(
            at: configuration.client.redirectURI, timeout: timeout, open: open)
        return try await login(through: receiver, parameters: parameters)
    }

    /// Signs in through a browser that a receiver of the app's own opens; see ``login(parameters:timeout:browser:)``.
    @discardableResult
    public func login(
        through receiver: any RedirectReceiver, parameters: [FormItems.Item] = []
    ) async throws -> User {
        let signIn = try await tokens.signIn(through: receiver, parameters: parameters)
        if let session = signIn.replacedSession {
            do { try await journeys.logout(session) } catch {
                configuration.logger.warning(
                    "the session of the sign-in before was not ended", metadata: ["reason": "\(error)"])
            }
        }
        do { try await cookies.removeAll() } catch {
            configuration.logger.warning(
                "cookies of the sign-in before are still stored", metadata: ["reason": "\(error)"])
        }
        return User(session: nil, idToken: signIn.tokens.idToken, assent: self)
    }
}
