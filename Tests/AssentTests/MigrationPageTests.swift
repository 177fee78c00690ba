import Foundation
import Testing

/// A page that leads from the vendors' SDKs to this one.
private struct MigrationPage: CustomTestStringConvertible {
    let name: String
    /// The code that is compiled with each build, by its name in `Snippets`.
    let snippets: String
    /// What the vendors' pages name, in words or in code. Each must be found in the first column of a table.
    let names: [String]
    /// What may stand as code beside the names that are compiled: words of the protocol and of other systems.
    let words: Set<String>

    var testDescription: String { name }

    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    var lines: [String] {
        get throws { try Self.text("docs/\(name).md").components(separatedBy: "\n") }
    }

    var compiled: String { get throws { try Self.text("Snippets/\(snippets).swift") } }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The tables' cells, without their heads.
    var rows: [[String]] {
        get throws {
            let rows = try lines.map { line in
                line.hasPrefix("|")
                    ? line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } : []
            }
            return zip(rows, rows.dropFirst() + [[]])
                .filter { !$0.isEmpty && !Self.isRule($0) && !Self.isRule($1) }.map(\.0)
        }
    }

    private static func isRule(_ row: [String]) -> Bool { row.first?.hasPrefix("---") == true }

    static let tokens = MigrationPage(
        name: "migrating-tokens", snippets: "MigratingTokens",
        names: [
            // "Token and key security", the half about tokens.
            "session cookie", "`iPlanetDirectoryPro`", "`HTTPOnly`", "`Secure`", "`localStorage`", "`sessionStorage`",
            "a storage of one's own", "hardware key", "within the threshold", "a new flow with the session",
            "does not renew sessions", "what has expired is removed", "tokens of another session are removed",
            "logout offline", "`401 Unauthorized`", "`endSession`", "`session?action=logout`", "`revoke`",
            "`FRUser.logout`", "`DefaultTokenManager`", "`DefaultSingleSignOnManager`",
            // "Navigating an authentication journey on iOS", from the success on.
            "`SuccessNode`", "`node.session`", "`successNode.session`", "the session token itself",
            "`successNode.input`", "`journey.journeyUser()`", "`journeyUser.token()`",
            "`Result<Token, OidcError>`", "`.success(let token)`", "`.failure(let error)`", "`.none`", "`Token`",
            "`OidcError`", "`String(describing: token)`", "`token.accessToken`", "`error.localizedDescription`",
            "`MainActor.run`", "`LogManager.standard.i(…)`", "`LogManager.standard.e(…)`", "`journeyUser.userinfo()`",
            "`journeyUser.revoke()`", "`journeyUser.logout()`",
        ], words: ["invalid_grant", "nil"])

    static let journeys = MigrationPage(
        name: "migrating-journeys", snippets: "MigratingJourneys",
        names: [
            // "Navigating an authentication journey on iOS", up to the success.
            "`start()`", #"`journey.start("sdkUsernamePasswordJourney")`"#, "`Node`", "`ContinueNode`",
            "`node.next()`", "`continueNode.next()`", "`ErrorNode`", "`node.message`", "`errorNode.message`",
            "`errorNode.input`", "`node.input`", "raw JSON response", "HTTP 4xx or 5xx", "invalid credentials",
            "one-time passcode", "`FailureNode`", "`node.cause`", "`node.cause()`", "`failureNode.cause`",
            "`Throwable`", "`SuccessNode`", "`node.session`", "`successNode.session`", "`successNode.input`",
            "`default: break`", "`node.callbacks()`", "`current.callbacks`", "`current.next()`", "`NameCallback`",
            "`nameCallback.name`", "`PasswordCallback`", "`passwordCallback.password`", "`prompt`",
            "other callback types as they are introduced",
        ], words: [])

    static let vault = MigrationPage(
        name: "migrating-vault", snippets: "MigratingVault",
        names: [
            "Android keystore", "iOS keychain", "hardware-backed security key when possible", "hardware-backed key",
            "cloud sharable", "Secure Enclave", "`kSecKeyAlgorithmECIESEncryptionCofactorX963SHA256AESGCM`",
            "`getEncryptor`", "`AndroidLEncryptor`", "`AndroidMEncryptor`", "`AndroidNEncryptor`",
            "`setInvalidatedByBiometricEnrollment`", "`AndroidPEncryptor`", "StrongBox", "`SecuredKey`",
            "`SecuredKey.isAvailable()`", "`SecuredKey` generation fails", "`KeychainManager`", "`KeychainService`",
            "`kSecClassGenericPassword`", "`DefaultTokenManager`", "`DefaultSingleSignOnManager`",
            "`SecuredSharedPreferences`", "`iPlanetDirectoryPro`", "`HTTPOnly`", "`Secure`", "`localStorage`",
            "`sessionStorage`", "custom storage mechanism",
        ], words: [])

    static let signing = MigrationPage(
        name: "migrating-signing", snippets: "MigratingSigning",
        names: [
            // "Transaction Signing": the workflow, then the sample in its order.
            "`HIDDevice`", "`HIDDeviceFactory`", "`newInstance`", "`transactionId`", "transaction identifier",
            "push notification payload", "`tds`", "list of pending transactions",
            "`Container.retrieveTransactionsIds`", "public information", "`HIDTransactionInfo`",
            "`Device.retrieveTransactionInfo`", "Session Transport Key", "`TransactionInfo.getTransaction`",
            "`Transaction.toString`", "`Transaction.getAllowedStatuses`", "approve", "decline",
            "Transaction Signing Protecting password", "`Transaction.setStatus`", "`NSError`",
            "`HIDConnectionConfiguration`", "`connectionConfig`", "`id<HIDDevice>`", "`pTransactionInfo`",
            "`retrieveTransactionInfo:error:`", "`id<HIDKey>`", "`HIDKey`", "`getTransactionProtectionKey`",
            "`ProtectionPolicy`", "`getProtectionPolicy`", "`policyType`", "`HIDPolicyTypePassword`",
            "`HIDTransaction`", "`pTransaction`", "`getTransaction:withParams:error:`", "`sessionPassword`",
            "`withParams:`", "`[pTransaction toString]`", "`getAllowedStatuses`", "`pSigningKey`", "`getSigningKey`",
            "`signingKeyPolicy`", "`isSigned`", "`setStatus:`", "`withSigningPassword:`", "`signingKeyPassword`",
            "`withSessionPassword:`", "`pDevice`", "`pKey`",
            // What the vendor's later versions call them.
            "`getDevice`", "`retrieveActionInfo`", "`withUserID`", "`HIDServerActionInfo`",
            "`ServerActionInfo.getAction`", "`ServerAction`", "`ACTION_TRANSACTION`", "`getProtectionKey`",
            "`HIDTransactionContainerInvalid`", "`HIDInvalidContainer`", "`HIDInexplicitContainer`",
            "`Device.updateDeviceInfo`", "`Container.updateDeviceInfo`", "`retrieveTransactionIds`",
            "`deleteContainer`", "`reason`", "`Transaction.cancel`", "`isCancelable`", "`getIdToken`",
            "`getRequestId`", "`HIDApprove…`", "`NoLock`", "`Delay`", "`Counter`", "`Silent`", "`AsyncOTPGenerator`",
            "`KeyFilter`",
            // "Names around it": the vendor's other pages.
            "`createContainer`", "`HIDContainerInitialization`", "QR code", "activation code", "`findContainers`",
            "`findKeys`", "usage and label", "rename", "`setName`", "`setProperty`", "push id", "`changePassword`",
            "`isRenewable`", "`renew`", "delete a container", "HOTP", "TOTP", "OCRA", "`getDefaultOTPGenerator`",
            "`SyncOTPGenerator`", "`generateAuthenticationRequest`", "user cancel", "notify suspicious",
        ], words: ["bioPassword", "nil", "notify"])

    static let authorization = MigrationPage(
        name: "migrating-authorization", snippets: "MigratingAuthorization",
        names: [
            // "Transactional authorization" on Android, in the order of the sample.
            "`IdentityGatewayAdviceInterceptor`", "`getAdviceHandler(advice)`", "`AdviceHandler`",
            "`AdviceHandler.onAdviceReceived(context, advice)`", "`PolicyAdvice`",
            "`FRSession.getCurrentSession().authenticate(context, advice, …)`",
            "`SecureCookieJar.builder().context(context).build()`", "`builder.cookieJar`", "`addInterceptor`",
            "`newCall(request).enqueue`", "`Callback.onFailure`", "`Callback.onResponse`",
            "`x-authenticate-response`", "`AccessTokenInterceptor`",
            // On iOS.
            "`AuthorizationPolicy(validatingURL:delegate:)`", "`AuthorizationPolicyDelegate`", "`FRURLProtocol`",
            "`FRURLProtocol.authorizationPolicy`", "`URLProtocol.registerClass`",
            "`URLSessionConfiguration.protocolClasses`",
            "`evaluateAuthorizationPolicy(responseData:response:error:)`",
            "`PolicyAdviceCreator().parseAsBase64(advice:)`",
            "`onPolicyAdviseReceived(policyAdvice:completion:)`", "`onPolicyAdviceReceived`",
            "`FRCompletionResultCallback`", "`FRSession.authenticate(policyAdvice:)`",
            "`updateRequest(originalRequest:txId:)`", "`_txid`",
            // In JavaScript.
            "`HttpClient.request({init, authorization: {handleStep}, timeout, url})`", "`handleStep`",
            "`credentials: 'include'`", "`step.getCallbackOfType(type)`", "`setName`", "`setPassword`",
            "`ValidatedCreateUsernameCallback`", "`ValidatedCreatePasswordCallback`", "`timeout: 0`",
            // Over REST.
            "`iPlanetAMWebAgentService`", "`subject.ssoToken`", "`environment.TxId`", "`TransactionConditionAdvice`",
        ], words: [])
}

@Suite("The pages about migrating")
struct MigrationPageTests {
    private static let pages = [MigrationPage.journeys, .tokens, .vault, .signing, .authorization]

    @Test("Each name of the vendors' pages has a row that begins with it", arguments: pages)
    fileprivate func names(page: MigrationPage) throws {
        let first = try page.rows.compactMap(\.first)
        #expect(page.names.filter { name in !first.contains { $0.contains(name) } } == [])
        #expect(try page.rows.filter { $0.count < 2 || $0[1].isEmpty } == [])
    }

    @Test("Each name that a row gives as the counterpart is in the code that is compiled", arguments: pages)
    fileprivate func counterparts(page: MigrationPage) throws {
        let code = try page.compiled.replacing(/\s\/\/.*/, with: "\n")
        let compiled = Set(code.matches(of: /[A-Za-z_][A-Za-z_0-9]*/).map { String($0.output) })
        var seen = 0
        for row in try page.rows where row.count > 1 {
            let named = row[1].matches(of: /`([^`]+)`/).flatMap { $0.1.matches(of: /[A-Za-z_][A-Za-z_0-9]*/) }
                .map { String($0.output) }
            seen += named.count
            #expect(named.filter { !compiled.contains($0) && !page.words.contains($0) } == [], "\(row[0])")
        }
        #expect(seen > 20)
    }

    @Test("Each line of Swift that a page shows is a line that is compiled", arguments: pages)
    fileprivate func shownCode(page: MigrationPage) throws {
        let compiled = Set(try page.compiled.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) })
        var isSwift = false
        for line in try page.lines {
            if line.hasPrefix("```") {
                isSwift = line == "```swift"
            } else if isSwift, !line.isEmpty {
                #expect(compiled.contains(line.trimmingCharacters(in: .whitespaces)), "\(line)")
            }
        }
    }
}
