import AssentCore
import AssentEngine

/// The configuration of the servers in these tests, in the operator's own form.
enum FixtureConfiguration {
    /// The secret of the clients `back-office` and `partner`.
    static let clientSecret = SystemRandom().token()

    /// Secrets of the clients `web:1 +%` and `reader`; the first has every character that form encoding changes.
    static let webSecret = "web secret:&=%+/?~ 0123456789abcdef"
    static let readerSecret = "reader-secret-0123456789abcdef0123456789"

    static func yaml(upstream: Int, refusing: Int) -> String {
        """
        development: true
        publicURL: https://localhost:0/am
        listen: {host: 127.0.0.1, port: 0}
        dataDirectory: data
        passwordCost: 1024
        transactionsPerMinute: 10000
        journeyStartsPerMinute: 100000
        realms:
          alpha:
            defaultJourney: Login
            sessions: {maxMinutes: 120, idleMinutes: 30}
            scopeTexts: {accounts: See <your> accounts}
            signing:
              name: Bank of Example
              templates:
                payment:
                  title: {en: Confirm payment, de: Zahlung freigeben}
                  text: "Pay {amount} to {to}"
                  match: number
                  fields:
                    - {id: amount, label: Amount, type: amount, from: /0/instructedAmount}
                    - {id: to, label: To, type: party, from: /0/creditorName}
                  notShown: [/0/type]
                login:
                  kind: authentication
                  title: Sign in
            acr:
              - {value: "urn:bank:code", journey: Login}
              - {value: "urn:bank:level1", level: 1}
            allowedOrigins: ["https://app.bank.example", "http://localhost:3000"]
            transactions: {failureStatus: 401}
            users:
              - {username: ana, credentials: generated, attributes: {mail: ana@bank.example, givenName: Ana, sn: Alvarez}}
              - {username: ben, credentials: generated}
              - {username: pat, credentials: generated, roles: [pep]}
            journeys:
        \(journeys)
              Confirm:
                entry: approve
                transactionalOnly: true
                nodes:
                  approve: {type: TransactionApprovalNode, outcomes: {approve: code, decline: failure}}
                  code:
                    type: OathTokenVerifierNode
                    outcomes: {successOutcome: success, failureOutcome: failure, notRegisteredOutcome: failure}
              Nod:
                entry: approve
                transactionalOnly: true
                nodes:
                  approve: {type: TransactionApprovalNode, outcomes: {approve: success, decline: failure}}
            clients:
              bank-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, profile, email, accounts, offline_access]
                idTokenAlgorithm: ES256
                accessTokenSeconds: 600
              "web:1 +%":
                secretHash: \(Base64URL.encode(SHA2.sha256(webSecret.utf8)))
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, accounts]
                idTokenAlgorithm: ES256
              reader:
                secretHash: \(Base64URL.encode(SHA2.sha256(readerSecret.utf8)))
                grantTypes: []
                introspectsAll: true
              back-office:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                redirectURIs: ["https://office.example/callback"]
                scopes: [openid]
                introspectsAll: true
              shop:
                name: Example Shop
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                grantTypes: [client_credentials]
                scopes: [signing, accounts]
                defaultScopes: [signing]
              kiosk:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, signing]
                idTokenAlgorithm: ES256
              jobs:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                grantTypes: [client_credentials]
                scopes: [accounts]
                defaultScopes: [accounts]
              edge:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                grantTypes: [client_credentials]
                scopes: [enforcement, accounts]
                defaultScopes: [enforcement]
              edge-two:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                grantTypes: [client_credentials]
                scopes: [enforcement]
                defaultScopes: [enforcement]
              edge-free:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                grantTypes: [client_credentials]
                scopes: [enforcement]
                defaultScopes: [enforcement]
              partner:
                secretHash: \(OAuthClient.hash(ofSecret: Secret(clientSecret)))
                redirectURIs: ["https://partner.example/callback"]
                idTokenAlgorithm: ES256
                scopes: [openid]
              partner-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, profile, accounts]
                audience: ["https://partner-api.example"]
                allowedOrigins: ["https://partner.example"]
                idTokenAlgorithm: ES256
              gateway-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid, profile, accounts]
                audience: ["https://elsewhere.example", "https://own.example"]
                idTokenAlgorithm: ES256
              asking-app:
                name: Asking & Co
                redirectURIs: ["https://asking.example/callback", "http://[::1]/callback"]
                scopes: [openid, accounts, offline_access]
                consentImplied: false
                idTokenAlgorithm: ES256
            enforcement:
              edge:
                clients: [edge]
                policySets: [bank]
                origins: ["https://localhost:9543"]
                believesAddress: true
                maxBodyBytes: 4096
              branch: {clients: [edge-two], policySets: [bank, rest], origins: ["https://localhost:9543"]}
            policySets:
              bank:
                policies:
                  - name: read
                    resources: ["https://localhost:*/accounts", "https://localhost:*/transfers", "https://localhost:*/down", "https://localhost:*/scoped"]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                  - name: files
                    resources: ["https://localhost:*/files/*", "https://localhost:*/files/*?*"]
                    actionValues: {GET: true, HEAD: true, OPTIONS: true, POST: true, PUT: true, PATCH: true, DELETE: true}
                    subject: {type: AuthenticatedUsers}
                  - name: stronger
                    resources: ["https://localhost:*/level"]
                    actionValues: {GET: true, POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: AuthLevel, authLevel: 1}
                  - name: by-journey
                    resources: ["https://localhost:*/journey"]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: AuthenticateToService, authenticateToService: Login}
                  - name: owned
                    resources: ["https://localhost:*/owned"]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                  - name: inside
                    resources: ["https://localhost:*/inside"]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: IPv4, startIp: 127.0.0.0, endIp: 127.255.255.255}
                  - name: outside
                    resources: ["https://localhost:*/outside"]
                    actionValues: {GET: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: NOT, condition: {type: IPv4, startIp: 127.0.0.0, endIp: 127.255.255.255}}
                  - name: others
                    resources: ["https://localhost:*/others"]
                    actionValues: {GET: true}
                    subject: {type: NOT, subject: {type: Identity, subjectValues: ["id=ben,ou=user,o=alpha"]}}
                  - name: note
                    resources: ["https://localhost:*/notes"]
                    actionValues: {POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                    bind: [method, query, body]
                  - name: pay
                    resources: ["https://localhost:*/transfers", "https://localhost:*/transfers?*"]
                    actionValues: {POST: true, PUT: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Confirm, ttl: 180}
                    bind: [method, query, body]
                    display: [{label: Amount, field: amount, suffix: currency}, {label: To, field: to}]
                    notShown: [/reference, "?a"]
                  - name: nod
                    resources: ["https://localhost:*/nods", "https://localhost:*/nods?*", "https://localhost:*/down/nods"]
                    actionValues: {POST: true, PUT: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                    bind: [method, query, body]
              rest:
                policies:
                  - name: withdraw
                    resources: ["https://bank.example:443/withdraw", "https://bank.example:443/withdraw?*"]
                    actionValues: {GET: true, POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                    bind: [query]
                  - name: see
                    resources: ["https://bank.example:443/see"]
                    actionValues: {GET: true, POST: false}
                    subject: {type: AuthenticatedUsers}
          beta:
            defaultJourney: Quick
            users:
              - {username: bob, credentials: generated}
            journeys:
        \(journeys)
              Nod:
                entry: approve
                transactionalOnly: true
                nodes:
                  approve: {type: TransactionApprovalNode, outcomes: {approve: success, decline: failure}}
            clients:
              bank-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid]
                idTokenAlgorithm: ES256
            policySets:
              shop:
                policies:
                  - name: pay
                    resources: ["https://beta.example:443/pay"]
                    actionValues: {POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition: {type: Transaction, strategySpecifier: Nod, ttl: 180}
                    bind: [query]
        gateway:
          publicURL: https://localhost:0
          port: 0
          routes:
            - name: bank
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              maxBodyBytes: 4096
              passHeaders: [X-Custom]
              stripHeaders: [X-Employee]
              allowedOrigins: ["https://app.bank.example"]
              home: /accounts
            - {name: open, path: /open, upstream: "http://127.0.0.1:\(upstream)", public: true}
            - {name: down, path: /down, upstream: "http://127.0.0.1:\(refusing)", realm: alpha, policySet: bank}
            - name: scoped
              path: /scoped
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              scopes: [accounts]
            - name: keyed
              path: /files/keyed
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              senderConstrained: true
            - name: owned
              path: /owned
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              audience: ["https://own.example"]
            - name: notes
              path: /notes
              upstream: http://127.0.0.1:\(upstream)
              realm: alpha
              policySet: bank
              mediaType: text/plain
        """
    }

    private static let journeys = """
              Login:
                entry: credentials
                authLevel: 1
                nodes:
                  credentials:
                    type: PageNode
                    config:
                      stage: UsernamePassword
                      nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": code, "false": failure}}
                  code:
                    type: OathTokenVerifierNode
                    outcomes: {successOutcome: success, failureOutcome: failure, notRegisteredOutcome: failure}
              Quick:
                entry: credentials
                nodes:
                  credentials:
                    type: PageNode
                    config: {nodes: [{type: UsernameCollectorNode}, {type: PasswordCollectorNode}]}
                    outcomes: {outcome: check}
                  check: {type: DataStoreDecisionNode, outcomes: {"true": success, "false": failure}}
        """
}
