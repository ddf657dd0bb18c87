// oidc-provider, which is certified by the OpenID Foundation, on a free port of loopback: anyone may sign in there, by any
// password. Its arguments: the client's id and secret, the server's URL. It prints its own URL.
import { Provider } from 'oidc-provider'
import { createServer } from 'node:http'

const [client, secret, server] = process.argv.slice(2)
const listening = createServer()
listening.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${listening.address().port}`
  const provider = new Provider(issuer, {
    clients: [{
      client_id: client,
      client_secret: secret,
      redirect_uris: [`${server}/login/sso/callback`],
      post_logout_redirect_uris: [`${server}/login`],
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['preferred_username', 'groups'] },
    cookies: { keys: ['a key for the tests'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id, email: `${id}@example.org`, email_verified: true, preferred_username: id,
        groups: id === 'anna' ? ['leads'] : [],
      }),
    }),
  })
  listening.on('request', provider.callback())
  console.log(issuer)
})
