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
    /// let user = try await assent.signIn { url in open(url) }
    /// ```
    ///
    /// There is no AM session afterwards: the refresh token alone renews the tokens, and a step-up that needs the
    /// session is not possible. A sign-in in memory ends. Cancel the task to give up.
    ///
    /// - Parameters:
    ///   - parameters: more items of the authorization request, for example `login_hint`, `prompt` or `acr_values`.
    ///   - timeout: seconds that the user has.
    ///   - open: opens the URL in a browser or shows it. It is called once and must not wait.
    /// - Returns: the user.
    /// - Throws: `TokenError`, for example `authorizationRefused` with `oauthError` `access_denied`;
    ///   `NIOTransportError` with code `notLoopback`, `cannotListen` or `noRedirect`; `CancellationError`.
    @discardableResult
    public func signIn(
        parameters: [FormItems.Item] = [], timeout: TimeInterval = 300,
        browser open: @escaping @Sendable (String) -> Void
    ) async throws -> User {
        let receiver = try await LoopbackRedirectReceiver.listening(
            at: configuration.client.redirectURI, timeout: timeout, open: open)
        return try await signIn(through: receiver, parameters: parameters)
    }

    /// Signs in through a browser that a receiver of the app's own opens, for example with a custom URL scheme.
    ///
    /// ```swift
    /// let user = try await assent.signIn(through: receiver, parameters: [.init("prompt", "login")])
    /// ```
    ///
    /// - Parameters:
    ///   - receiver: opens the browser and receives the redirect.
    ///   - parameters: more items of the authorization request.
    /// - Returns: the user.
    /// - Throws: `TokenError`; the receiver's errors; `CancellationError`.
    @discardableResult
    public func signIn(
        through receiver: any RedirectReceiver, parameters: [FormItems.Item] = []
    ) async throws -> User {
        let signIn = try await tokens.signIn(through: receiver, parameters: parameters)
        let login = current.drop(abandoning: false)
        if let login { _ = await login.tokens.signOut() }
        if let session = signIn.replacedSession {
            do { try await journeyClient.signOut(session) } catch {
                configuration.logger.warning(
                    "the session of the sign-in before was not ended", metadata: ["reason": "\(error)"])
            }
        }
        do { try await cookies.removeAll() } catch {
            configuration.logger.warning(
                "cookies of the sign-in before are still stored", metadata: ["reason": "\(error)"])
        }
        return User(session: nil, idToken: signIn.tokens.idToken, assent: self, tokens: signIn.user)
    }
}
